// SPDX-License-Identifier: Apache-2.0
// Whose compiler takes an older standard unless told otherwise (g++ 12: C++17) reads so first.
// mistake: -std=c++17
// first error: collx needs C++20
#include "collx/collx.hpp"
