// SPDX-License-Identifier: Apache-2.0
// The yardstick of bench/compile_time: what any program of this kind includes anyway.
#include <atomic>
#include <span>
#include <vector>

int main() {}
