// SPDX-License-Identifier: Apache-2.0
// One unit of a program that is linked with default_algorithm_other.cpp as it was compiled with and without
// COLLX_CHOOSE_AT_RUN_TIME.
#include "default_algorithm.hpp"

int main() { return number_of_other_unit(); }
