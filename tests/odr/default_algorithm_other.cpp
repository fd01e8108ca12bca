// SPDX-License-Identifier: Apache-2.0
// The other unit; see default_algorithm_main.cpp.
#include "default_algorithm.hpp"

int number_of_other_unit() { return 0; }
