// SPDX-License-Identifier: Apache-2.0
// Fat binaries and what they register: PTX, kernels, variables.
#include "cuda/emulated/runtime/modules.hpp"

#include <cstdint>
#include <cstring>
#include <list>
#include <stdexcept>

#include "cuda/emulated/runtime/devices.hpp"
#include "cuda/emulated/runtime/memory.hpp"
#include "cuda/emulated/runtime/streams.hpp"

namespace emulated::runtime {

namespace {

struct wrapper_layout {
  std::uint32_t magic, version;
  void const* data;
  void* more;
};
struct binary_layout {
  std::uint32_t magic;
  std::uint16_t version, header_bytes;
  std::uint64_t bytes;
};
struct part_layout {
  std::uint16_t kind, version;
  std::uint32_t header_bytes;
  std::uint64_t bytes;
  std::uint32_t compressed_bytes, options;
  std::uint16_t minor, major;
  std::uint32_t architecture, name_offset, name_bytes;
  std::uint64_t flags, unused, whole_bytes;
};
static_assert(sizeof(part_layout) == 64);
constexpr std::uint32_t wrapper_magic = 0x466243b1, binary_magic = 0xba55ed50;
constexpr std::uint16_t kind_ptx = 1;
constexpr std::uint64_t compressed_flags = 0x2000 | 0x8000;  // LZ4, zstd

struct registered_variable {
  image* of = nullptr;
  std::string name;
};

struct registry {
  std::mutex mutex;  // before main() begins, and where kernels are looked up
  std::list<image> images;
  std::map<void const*, entry> entries;
  std::map<void const*, registered_variable> variables;
};
[[nodiscard]] registry& registered() {
  static auto* const all_of_them = new registry;
  return *all_of_them;
}

// Variables can be copied to and from like other memory.
void enter_variables(image& of, int ordinal) {
  for (auto const& [address, variable] : registered().variables) {
    if (variable.of != &of) continue;
    std::size_t bytes = 0;
    std::byte* const at = of.on(ordinal).variable(variable.name, &bytes);
    if (at == nullptr || bytes == 0) continue;
    allocation made;
    made.begin = reinterpret_cast<std::uintptr_t>(at);
    made.bytes = bytes;
    made.kind = memory_kind::variable;
    made.ordinal = ordinal;
    memory().enter(std::move(made));
  }
}

}  // namespace

module const& image::on(int ordinal) {
  auto& found = loaded[ordinal];
  if (found != nullptr) return *found;
  if (ptx.empty())
    throw std::runtime_error(
        "the program holds no uncompressed PTX for this GPU; compile it with architectures 80-virtual (or "
        "90-virtual, for COLLX_EMULATED_CAPABILITY=9.0; or 80 and 90) and --compress-mode=none");
  found = std::make_unique<module>(ptx);
  enter_variables(*this, ordinal);
  return *found;
}

void take_ptx(void const* given, image& into) {
  auto const* const wrapper = static_cast<wrapper_layout const*>(given);
  if (wrapper->magic != wrapper_magic) return;
  auto const* const whole = static_cast<char const*>(wrapper->data);
  binary_layout binary;
  std::memcpy(&binary, whole, sizeof binary);
  if (binary.magic != binary_magic) return;
  char const* const end = whole + binary.header_bytes + binary.bytes;
  for (char const* at = whole + binary.header_bytes; at + sizeof(part_layout) <= end;) {
    part_layout part;
    std::memcpy(&part, at, sizeof part);
    auto const architecture = static_cast<int>(part.architecture);
    if (part.kind == kind_ptx && (part.flags & compressed_flags) == 0 &&
        architecture <= capability() && architecture >= into.architecture) {
      std::string_view const text(at + part.header_bytes, static_cast<std::size_t>(part.bytes));
      into.ptx = text.substr(0, text.find('\0'));  // padded
      into.architecture = architecture;
    }
    at += part.header_bytes + part.bytes;
  }
}

entry* find_entry(void const* function) {
  registry& r = registered();
  std::lock_guard const held(r.mutex);
  auto const found = r.entries.find(function);
  if (found != r.entries.end()) return &found->second;
  for (auto& [stub, each] : r.entries)
    if (&each == function) return &each;
  return nullptr;
}

kernel const* load(lock& held, entry& what, int ordinal) {
  kernel const*& found = what.found[ordinal];
  if (found != nullptr) return found;
  if (all().loads_lazily) (void)wait_for_device(held, ordinal);
  found = what.of->on(ordinal).find(what.name);
  if (found == nullptr) throw std::runtime_error("no kernel " + what.name + " in the PTX of this program");
  return found;
}

// What a module is made of is read at once, what its kernels are made of when they are launched: it is of no
// consequence here but for the time that it takes.
void load_all_modules(lock&, int ordinal) {
  for (image& each : registered().images) (void)each.on(ordinal);
}

}  // namespace emulated::runtime

using namespace emulated::runtime;

extern "C" {

void** __cudaRegisterFatBinary(void* wrapper) {
  registry& r = registered();
  std::lock_guard const held(r.mutex);
  r.images.emplace_back();
  take_ptx(wrapper, r.images.back());
  return reinterpret_cast<void**>(&r.images.back());
}
void __cudaRegisterFatBinaryEnd(void**) {}
// Streams may run still: nothing goes before the process does.
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) { return 1; }

void __cudaRegisterFunction(void** handle, char const* stub, char*, char const* name, int, uint3*, uint3*,
                            dim3*, dim3*, int*) {
  registry& r = registered();
  std::lock_guard const held(r.mutex);
  entry& made = r.entries[stub];
  made.of = reinterpret_cast<image*>(handle);
  made.name = name;
}

void __cudaRegisterVar(void** handle, char* variable, char*, char const* name, int, std::size_t, int, int) {
  registry& r = registered();
  std::lock_guard const held(r.mutex);
  r.variables[variable] = {reinterpret_cast<image*>(handle), name};
}

cudaError_t __cudaGetKernel(cudaKernel_t* to, void const* stub) {
  entry* const found = find_entry(stub);
  *to = reinterpret_cast<cudaKernel_t>(found);
  return found == nullptr ? noted(cudaErrorInvalidDeviceFunction) : cudaSuccess;
}

cudaError_t cudaGetSymbolAddress(void** to, void const* variable) {
  return call("cudaGetSymbolAddress", [&](lock&, device& here) {
    auto const found = registered().variables.find(variable);
    if (found == registered().variables.end()) return cudaErrorInvalidSymbol;
    std::size_t bytes = 0;
    *to = found->second.of->on(here.ordinal).variable(found->second.name, &bytes);
    return *to == nullptr ? cudaErrorInvalidSymbol : cudaSuccess;
  });
}
}
