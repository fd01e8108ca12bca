// SPDX-License-Identifier: Apache-2.0
// The ranges of memory that there are, by address.
#include "cuda/emulated/runtime/memory.hpp"

#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cuda/emulated/runtime/devices.hpp"
#include "cuda/emulated/runtime/streams.hpp"
#include "cuda/emulated/runtime/team.hpp"

namespace emulated {

std::atomic<std::uint64_t> ranges_changed{0};

namespace {

// Kernels of one device reach memory of another only if that was asked for.
bool ask_for_range(std::uintptr_t at, range& found) {
  using namespace runtime;
  allocation around;
  if (!memory().find(at, around)) return false;
  int const here = device_at_work();
  if (around.kind == memory_kind::multicast) return false;  // see find_replicas()
  if (around.kind == memory_kind::mapped && around.granted.count(here) == 0) return false;
  if (around.kind == memory_kind::plain && here >= 0 && here != around.ordinal) {
    lock const held(all().mutex);
    if (all().devices[static_cast<std::size_t>(here)].peers.count(around.ordinal) == 0) return false;
  }
  found.begin = around.begin;
  found.end = around.begin + around.bytes;
  found.shift = addresses().has(at) ? addresses().shift() : 0;
  return true;
}

// What a thread of the host was told, which carries out launches of one device at a time.
struct told_ranges {
  static constexpr std::size_t most = 16;
  std::uint64_t known_at = 0;
  int ordinal = -1;
  std::size_t count = 0, replaced = 0;
  range all[most];
};

}  // namespace

bool find_range(std::uintptr_t at, range& found) {
  static thread_local told_ranges told;
  // Acquire: pairs with count_change(), before which the map was changed.
  std::uint64_t const changes = ranges_changed.load(std::memory_order_acquire);
  if (changes != told.known_at || told.ordinal != runtime::device_at_work())
    told.known_at = changes, told.ordinal = runtime::device_at_work(), told.count = 0;
  for (std::size_t i = 0; i < told.count; ++i)
    if (at >= told.all[i].begin && at < told.all[i].end) return found = told.all[i], true;
  if (!ask_for_range(at, found)) return false;
  told.all[told.count < told_ranges::most ? told.count++ : told.replaced++ % told_ranges::most] = found;
  return true;
}

char const* find_replicas(std::uintptr_t at, std::size_t bytes, replicas& found) {
  using namespace runtime;
  allocation around;
  if (!memory().find(at, around) || around.kind != memory_kind::multicast)
    return "which is no multicast address";
  if (around.granted.count(device_at_work()) == 0) return "which this device was given no access to";
  return around.file->joined->find(at - around.begin, bytes, found);
}

namespace runtime {

namespace {

constexpr char file_name[] = "collx_emulated_gpu_";

}  // namespace

// Release: whoever sees the count finds what has changed; that has locks of its own.
void count_change() { ranges_changed.fetch_add(1, std::memory_order_release); }

physical::~physical() {
  if (fd >= 0) (void)close(fd);
  if (is_counted) all().devices[static_cast<std::size_t>(ordinal)].used_bytes -= bytes;
}

std::shared_ptr<physical> make_physical(int ordinal, std::size_t bytes) {
  device& of = all().devices[static_cast<std::size_t>(ordinal)];
  bytes = whole_blocks(bytes);
  if (bytes == 0 || bytes > all().device_bytes - of.used_bytes) return nullptr;
  auto const made = std::make_shared<physical>();
  char name[64];
  std::snprintf(name, sizeof name, "%s%d", file_name, ordinal);
  made->fd = memfd_create(name, MFD_CLOEXEC);
  made->ordinal = ordinal;
  if (made->fd < 0 || ftruncate(made->fd, static_cast<off_t>(bytes)) != 0) return nullptr;
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, made->fd, 0);
  if (at == MAP_FAILED) return nullptr;
  std::memset(at, 0xA5, bytes);
  (void)munmap(at, bytes);
  made->bytes = bytes;
  made->is_counted = true;
  of.used_bytes += bytes;
  return made;
}

std::string name_of_file(int fd) {
  char link[64], name[128];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t const length = readlink(link, name, sizeof name);
  return {name, length <= 0 ? 0 : static_cast<std::size_t>(length)};
}

std::uint64_t number_of_file(int fd) {
  struct stat about {};
  return fstat(fd, &about) == 0 ? static_cast<std::uint64_t>(about.st_ino) : 0;
}

int open_file_of(int process, int fd, std::uint64_t number) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", process, fd);
  int const opened = open(path, O_RDWR | O_CLOEXEC);
  if (opened < 0 || number_of_file(opened) == number) return opened;
  (void)close(opened);
  return -1;
}

std::shared_ptr<physical> adopt(int fd) {
  auto const taken = std::make_shared<physical>();
  taken->fd = fd;
  std::string const name = name_of_file(fd);
  std::size_t const found = name.find(file_name);
  struct stat about {};
  if (found == std::string::npos || fstat(fd, &about) != 0 ||
      std::sscanf(name.c_str() + found + sizeof file_name - 1, "%d", &taken->ordinal) != 1)
    return nullptr;
  taken->bytes = static_cast<std::size_t>(about.st_size);
  taken->is_shareable = true;
  return taken;
}

// ---- what there is

memory_map& memory() {
  static auto* const map = new memory_map;
  return *map;
}

void memory_map::enter(allocation what) {
  std::lock_guard const held(mutex_);
  what.id = ++last_id_;
  known_[what.begin] = std::move(what);
  count_change();
}

void memory_map::remove(std::uintptr_t begin) {
  std::lock_guard const held(mutex_);
  known_.erase(begin);
  count_change();
}

void memory_map::grant(std::uintptr_t begin, int ordinal) {
  std::lock_guard const held(mutex_);
  known_.at(begin).granted.insert(ordinal);
  count_change();
}

bool memory_map::find(std::uintptr_t at, allocation& found) const {
  std::lock_guard const held(mutex_);
  auto behind = known_.upper_bound(at);
  if (behind == known_.begin()) return false;
  auto const& around = std::prev(behind)->second;
  if (!around.has(at)) return false;
  found = around;
  return true;
}

bool memory_map::overlaps(std::uintptr_t begin, std::size_t bytes) const {
  std::lock_guard const held(mutex_);
  auto const behind = known_.upper_bound(begin);
  if (behind != known_.end() && behind->first - begin < bytes) return true;
  return behind != known_.begin() && std::prev(behind)->second.has(begin);
}

// ---- addresses

address_space& addresses() {
  static auto* const space = new address_space;
  return *space;
}

address_space::address_space() {
  for (bytes_ = std::size_t{256} << 30; bytes_ >= std::size_t{1} << 30; bytes_ /= 2) {
    std::size_t const wanted = bytes_ * 2 + block_bytes;
    void* const at = mmap(nullptr, wanted, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) continue;
    begin_ = whole_blocks(reinterpret_cast<std::uintptr_t>(at));
    shift_ = static_cast<std::intptr_t>(bytes_);
    free_[begin_] = bytes_;
    return;
  }
  throw std::bad_alloc();
}

std::uintptr_t address_space::take(std::size_t bytes, std::size_t alignment) {
  bytes = whole_blocks(bytes);
  if (alignment < block_bytes) alignment = block_bytes;
  for (auto const& [begin, length] : free_) {
    std::uintptr_t const at = (begin + alignment - 1) / alignment * alignment;
    if (at - begin > length || bytes > length - (at - begin)) continue;
    std::size_t const before = at - begin, behind = length - before - bytes;
    free_.erase(begin);
    if (before != 0) free_[at - before] = before;
    if (behind != 0) free_[at + bytes] = behind;
    return at;
  }
  return 0;
}

void address_space::give_back(std::uintptr_t at, std::size_t bytes) {
  auto const made = free_.emplace(at, whole_blocks(bytes)).first;
  auto const next = std::next(made);
  if (next != free_.end() && made->first + made->second == next->first) {
    made->second += next->second;
    free_.erase(next);
  }
  if (made == free_.begin()) return;
  auto const before = std::prev(made);
  if (before->first + before->second != made->first) return;
  before->second += made->second;
  free_.erase(made);
}

bool address_space::show(std::uintptr_t at, physical const& what, std::size_t offset, std::size_t bytes) {
  void* const wanted = bytes_at(at);
  return mmap(wanted, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, what.fd,
              static_cast<off_t>(offset)) == wanted;
}

void address_space::hide(std::uintptr_t at, std::size_t bytes) {
  (void)mmap(bytes_at(at), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

std::byte* bytes_at(std::uintptr_t address) {
  auto const shift = addresses().has(address) ? static_cast<std::uintptr_t>(addresses().shift()) : 0;
  return reinterpret_cast<std::byte*>(address + shift);
}

}  // namespace runtime

}  // namespace emulated
