// SPDX-License-Identifier: Apache-2.0
// The other unit. It uses what first_unit.cpp uses, so that both emit it.
#include "every_header.hpp"

int algorithm_count_of_second_unit() { return collx::algo::all::size; }
char const* status_name_of_second_unit() { return collx::name(collx::status::timeout); }
