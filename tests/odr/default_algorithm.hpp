// SPDX-License-Identifier: Apache-2.0
// What both units of test_odr_default_algorithm include: nothing of collx but what they may differ in.
#pragma once

#include "collx/collective/invocation.hpp"

int number_of_other_unit();
