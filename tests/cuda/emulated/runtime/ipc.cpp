// SPDX-License-Identifier: Apache-2.0
// Handles of memory for other processes. What a handle is of shares its block with other allocations perhaps:
// the whole block is mapped, once, and what is opened lies in it.
#include <cstdio>
#include <cstring>
#include <map>
#include <tuple>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cuda/emulated/runtime/capture.hpp"
#include "cuda/emulated/runtime/memory.hpp"

namespace emulated::runtime {

namespace {

constexpr std::uint32_t handle_magic = 0xc0111ec7;

// What a handle holds.
struct ticket {
  std::uint32_t magic;
  std::int32_t process, fd, ordinal;
  std::uint64_t file;  // its number among all files in memory
  std::uint64_t id;    // of the allocation, in its process
  std::uint64_t offset, bytes;
};
static_assert(sizeof(ticket) <= sizeof(cudaIpcMemHandle_t));

struct opened_block {
  std::shared_ptr<physical> file;
  std::uintptr_t at = 0;
  int count = 0;  // of what is open in it
};
using block_key = std::pair<std::int32_t, std::uint64_t>;                   // process, file
using ticket_key = std::tuple<std::int32_t, std::uint64_t, std::uint64_t>;  // and the allocation

struct opened {
  ticket_key key;
  block_key block;
  ticket what;
  int count = 0;
};

struct table {
  std::map<block_key, opened_block> blocks;
  std::map<ticket_key, std::uintptr_t> places;
  std::map<std::uintptr_t, opened> all_of_them;  // by the address that was given
};
[[nodiscard]] table& opened_here() {
  static auto* const made = new table;
  return *made;
}

// Tells the process whose memory it is that it is open; see allocations.cpp.
void mark(physical const& file, ticket const& what, short how) {
  struct flock range_of_it {};
  range_of_it.l_type = how;
  range_of_it.l_whence = SEEK_SET;
  range_of_it.l_start = static_cast<off_t>(what.offset);
  range_of_it.l_len = static_cast<off_t>(what.bytes);
  (void)fcntl(file.fd, F_OFD_SETLK, &range_of_it);
}

// Maps the block unless it is mapped; null if the process, or the memory, is gone.
[[nodiscard]] opened_block* open_block(ticket const& what) {
  block_key const key{what.process, what.file};
  auto const found = opened_here().blocks.find(key);
  if (found != opened_here().blocks.end()) return &found->second;
  int const fd = open_file_of(what.process, what.fd, what.file);
  if (fd < 0) return nullptr;
  opened_block made;
  made.file = adopt(fd);
  if (made.file == nullptr) return nullptr;
  made.at = addresses().take(made.file->bytes);
  if (made.at == 0) return nullptr;
  if (!addresses().show(made.at, *made.file, 0, made.file->bytes)) {
    addresses().give_back(made.at, made.file->bytes);
    return nullptr;
  }
  return &opened_here().blocks.emplace(key, std::move(made)).first->second;
}

void leave_block(block_key const& key) {
  auto const found = opened_here().blocks.find(key);
  if (--found->second.count != 0) return;
  addresses().hide(found->second.at, found->second.file->bytes);
  addresses().give_back(found->second.at, found->second.file->bytes);
  opened_here().blocks.erase(found);
}

[[nodiscard]] cudaError_t open_ticket(lock& held, device& here, ticket const& what, void** to) {
  if (what.magic != handle_magic) return cudaErrorInvalidValue;
  if (what.process == getpid()) return cudaErrorDeviceUninitialized;  // as CUDA says in the same context
  ticket_key const key{what.process, what.file, what.id};
  table& all_opened = opened_here();
  if (auto const known = all_opened.places.find(key); known != all_opened.places.end()) {
    ++all_opened.all_of_them.at(known->second).count;
    *to = reinterpret_cast<void*>(known->second);
    return cudaSuccess;
  }
  may_wait_for_device(held, here.ordinal);
  opened_block* const block = open_block(what);
  if (block == nullptr) return cudaErrorInvalidResourceHandle;
  ++block->count;
  mark(*block->file, what, F_RDLCK);
  allocation made;
  made.begin = block->at + what.offset;
  made.bytes = what.bytes;
  made.kind = memory_kind::imported;
  made.ordinal = what.ordinal;
  made.file = block->file;
  made.offset = what.offset;
  all_opened.places[key] = made.begin;
  all_opened.all_of_them[made.begin] = {key, {what.process, what.file}, what, 1};
  *to = reinterpret_cast<void*>(made.begin);
  memory().enter(std::move(made));
  return cudaSuccess;
}

}  // namespace

}  // namespace emulated::runtime

using namespace emulated::runtime;

extern "C" {

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* to, void* at) {
  return call("cudaIpcGetMemHandle", [&](lock&, device&) {
    allocation found;
    auto const address = reinterpret_cast<std::uintptr_t>(at);
    if (to == nullptr || !memory().find(address, found) || found.kind != memory_kind::plain)
      return cudaErrorInvalidValue;
    if (found.begin != address) {
      complain("cudaIpcGetMemHandle", "the pointer is not the base of its allocation");
      return cudaErrorInvalidValue;
    }
    ticket const made{
        handle_magic, getpid(),     found.file->fd, found.ordinal, number_of_file(found.file->fd),
        found.id,     found.offset, found.bytes};
    *to = {};
    std::memcpy(to, &made, sizeof made);
    return cudaSuccess;
  });
}

cudaError_t cudaIpcOpenMemHandle(void** to, cudaIpcMemHandle_t handle, unsigned flags) {
  return call("cudaIpcOpenMemHandle", [&](lock& held, device& here) {
    if (to == nullptr || flags != cudaIpcMemLazyEnablePeerAccess) return cudaErrorInvalidValue;
    if (cudaError_t const code = refuse_unsafe(); code != cudaSuccess) return code;
    if (all().has_closed_handles) return cudaErrorOperatingSystem;
    ticket what;
    std::memcpy(&what, &handle, sizeof what);
    return open_ticket(held, here, what, to);
  });
}

cudaError_t cudaIpcCloseMemHandle(void* at) {
  return call("cudaIpcCloseMemHandle", [&](lock& held, device& here) {
    if (cudaError_t const code = refuse_unsafe(); code != cudaSuccess) return code;
    auto const address = reinterpret_cast<std::uintptr_t>(at);
    auto& list = opened_here().all_of_them;
    auto const found = list.find(address);
    if (found == list.end()) return cudaErrorInvalidValue;
    if (--found->second.count != 0) return cudaSuccess;
    may_wait_for_device(held, here.ordinal);
    memory().remove(address);
    mark(*opened_here().blocks.at(found->second.block).file, found->second.what, F_UNLCK);
    leave_block(found->second.block);
    opened_here().places.erase(found->second.key);
    list.erase(found);
    return cudaSuccess;
  });
}
}
