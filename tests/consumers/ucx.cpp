// SPDX-License-Identifier: Apache-2.0
// A program that needs the component ucx: it has only to compile and link.
#include <collx/bootstrap/ucx.hpp>

int main() { return collx::connect<collx::transport::ucx>().size() - 1; }
