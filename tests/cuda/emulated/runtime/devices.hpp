// SPDX-License-Identifier: Apache-2.0
// What the runtime and the driver both say of devices.
#pragma once

#include <cuda.h>

#include "cuda/emulated/runtime/books.hpp"

namespace emulated::runtime {

[[nodiscard]] bool is_device(int ordinal);
// cudaDeviceAttr and CUdevice_attribute have the same numbers.
[[nodiscard]] int attribute_of(int which, int ordinal);
// Major and minor, as 80.
[[nodiscard]] int capability();
void name_device(int ordinal, unsigned char (&to)[16]);
// Which memory a device may touch is another from here on.
void count_change();

}  // namespace emulated::runtime
