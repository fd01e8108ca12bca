// SPDX-License-Identifier: Apache-2.0
// A CUDA driver's virtual memory and multicast objects, played: it keeps books of what there is, notes every
// call and every one that breaks a rule, and fails where it is told to.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace played_driver {

inline constexpr std::size_t unit = std::size_t{2} << 20;
inline constexpr std::size_t object_unit_bytes = unit / 4;
inline constexpr int refusal = 801;  // what a call says that is told to fail

// What all drivers of a test have in common.
struct machine {
  struct memory {
    std::size_t bytes = 0;
    int device = -1;
    bool is_shareable = false, is_object = false;
    int handles = 0, mappings = 0;
    std::size_t devices = 0;                  // that an object is for
    std::set<int> added = {};                 // to an object
    std::map<int, std::uint64_t> bound = {};  // by device: to an object
  };
  struct range {
    std::size_t bytes = 0;
    std::size_t alignment = 0;
    std::uint64_t memory = 0;  // 0: nothing is mapped there
    std::set<int> devices;     // with access
  };

  std::mutex mutex;
  std::map<std::uint64_t, memory> memories;
  std::map<std::uint64_t, std::pair<std::uint64_t, int>> handles;  // to memories, and their process
  std::map<std::uint64_t, range> ranges;
  std::map<ino_t, std::uint64_t> exported;
  std::vector<std::string> calls, wrong;
  // Whether this call of a rank's driver fails.
  std::function<bool(int rank, std::string const& function)> refuses = [](int, std::string const&) {
    return false;
  };
  std::function<std::size_t(int rank)> unit_of = [](int) { return unit; };
  std::uint64_t last = 0;

  [[nodiscard]] bool is_empty() const { return memories.empty() && handles.empty() && ranges.empty(); }
  void require(bool rule, char const* what) {
    if (!rule) wrong.emplace_back(what);
  }
  void drop_if_unused(std::uint64_t id) {
    memory const& m = memories.at(id);
    if (m.handles != 0 || m.mappings != 0) return;
    require(m.bound.empty(), "an object went before what is bound to it");
    for (auto const& [other, object] : memories)
      for (auto const& [device, bound] : object.bound) require(bound != id, "memory went that is bound");
    memories.erase(id);
  }
};

// One rank's.
class driver {
 public:
  driver() = default;
  // `process`: handles are good there only; devices are numbered from 0 in each.
  explicit driver(machine& m, int rank = 0, int process = 0) : m_(&m), rank_(rank), process_(process) {}

  int unit(int, bool, std::size_t& bytes) noexcept {
    return call("unit", [&] { bytes = m_->unit_of(rank_); });
  }
  int create(std::size_t bytes, int device, bool is_shareable, std::uint64_t& handle) noexcept {
    return call("create", [&] {
      m_->require(bytes != 0 && bytes % played_driver::unit == 0, "create: not whole units");
      handle = add({.bytes = bytes, .device = device, .is_shareable = is_shareable, .handles = 1});
    });
  }
  int release(std::uint64_t handle) noexcept {
    return call("release", [&] {
      auto const found = m_->handles.find(handle);
      m_->require(found != m_->handles.end(), "release: twice");
      if (found == m_->handles.end()) return;
      m_->require(found->second.second == process_, "release: a handle of another process");
      std::uint64_t const id = found->second.first;
      m_->handles.erase(found);
      --m_->memories.at(id).handles;
      m_->drop_if_unused(id);
    });
  }
  int export_fd(std::uint64_t handle, int& fd) noexcept {
    return call("export_fd", [&] {
      std::uint64_t const id = memory_of(handle);
      m_->require(m_->memories.at(id).is_shareable, "export: of memory that cannot be");
      fd = static_cast<int>(syscall(SYS_memfd_create, "played", 0u));  // programs may inherit it
      m_->exported[number_of(fd)] = id;
    });
  }
  int import_fd(int fd, std::uint64_t& handle) noexcept {
    return call("import_fd", [&] {
      std::uint64_t const id = m_->exported.at(number_of(fd));
      ++m_->memories.at(id).handles;
      handle = ++m_->last;
      m_->handles[handle] = {id, process_};
    });
  }
  int reserve(std::size_t bytes, std::size_t alignment, std::uint64_t& address) noexcept {
    return call("reserve", [&] {
      m_->require(bytes != 0 && bytes % played_driver::unit == 0, "reserve: not whole units");
      address = ++m_->last << 40;
      m_->ranges[address].bytes = bytes;
      m_->ranges[address].alignment = alignment;
    });
  }
  int free_address(std::uint64_t address, std::size_t bytes) noexcept {
    return call("free_address", [&] {
      m_->require(m_->ranges.at(address).memory == 0, "free_address: still mapped");
      m_->require(m_->ranges.at(address).bytes == bytes, "free_address: another size");
      m_->ranges.erase(address);
    });
  }
  int map(std::uint64_t address, std::size_t bytes, std::uint64_t handle) noexcept {
    return call("map", [&] {
      machine::range& where = m_->ranges.at(address);
      where.memory = memory_of(handle);
      machine::memory const& what = m_->memories.at(where.memory);
      m_->require(where.bytes == bytes && what.bytes == bytes, "map: another size");
      m_->require(!what.is_object || where.alignment == object_unit_bytes, "map: an object at any address");
      ++m_->memories.at(where.memory).mappings;
    });
  }
  int unmap(std::uint64_t address, std::size_t bytes) noexcept {
    return call("unmap", [&] {
      machine::range& where = m_->ranges.at(address);
      m_->require(where.memory != 0 && where.bytes == bytes, "unmap: what is not mapped");
      std::uint64_t const id = std::exchange(where.memory, 0);
      --m_->memories.at(id).mappings;
      m_->drop_if_unused(id);
    });
  }
  int grant(std::uint64_t address, std::size_t bytes, int const* devices, std::size_t count) noexcept {
    return call("grant", [&] {
      machine::range& where = m_->ranges.at(address);
      m_->require(where.memory != 0 && where.bytes == bytes, "grant: not all of a mapping");
      where.devices.insert(devices, devices + count);
    });
  }

  bool can_multicast(int) noexcept {
    return call("can_multicast", [] {}) == 0;
  }
  int object_unit(std::size_t, int, bool, std::size_t& bytes) noexcept {
    return call("object_unit", [&] { bytes = object_unit_bytes; });
  }
  int create_object(std::size_t bytes, int devices, bool is_shareable, std::uint64_t& object) noexcept {
    return call("create_object", [&] {
      object = add({.bytes = bytes,
                    .is_shareable = is_shareable,
                    .is_object = true,
                    .handles = 1,
                    .devices = static_cast<std::size_t>(devices)});
    });
  }
  int add_device(std::uint64_t object, int device) noexcept {
    return call("add_device", [&] {
      m_->require(m_->memories.at(memory_of(object)).added.insert(device_of(device)).second,
                  "add_device: twice");
    });
  }
  int bind(std::uint64_t object, std::uint64_t handle, std::size_t bytes) noexcept {
    return call("bind", [&] {
      machine::memory& to = m_->memories.at(memory_of(object));
      machine::memory const& what = m_->memories.at(memory_of(handle));
      m_->require(to.added.size() == to.devices, "bind: before all devices are in");
      m_->require(to.bytes == bytes && what.bytes == bytes, "bind: another size");
      m_->require(to.is_shareable == what.is_shareable, "bind: memory of another kind");
      to.bound[device_of(what.device)] = memory_of(handle);
    });
  }
  int unbind(std::uint64_t object, int device, std::size_t bytes) noexcept {
    return call("unbind", [&] {
      machine::memory& from = m_->memories.at(memory_of(object));
      m_->require(from.bound.erase(device_of(device)) == 1 && from.bytes == bytes,
                  "unbind: what is not bound");
    });
  }

 private:
  template <class F>
  int call(char const* function, F const& f) noexcept {
    std::lock_guard const only_me(m_->mutex);
    m_->calls.emplace_back(function);
    if (m_->refuses(rank_, function)) return refusal;
    f();
    return 0;
  }
  std::uint64_t add(machine::memory&& what) {
    std::uint64_t const id = ++m_->last, handle = ++m_->last;
    m_->memories[id] = std::move(what);
    m_->handles[handle] = {id, process_};
    return handle;
  }
  [[nodiscard]] std::uint64_t memory_of(std::uint64_t handle) const {
    auto const& [memory, process] = m_->handles.at(handle);
    m_->require(process == process_, "a handle of another process");
    return memory;
  }
  [[nodiscard]] int device_of(int in_process) const { return 100 * process_ + in_process; }
  [[nodiscard]] static ino_t number_of(int fd) {
    struct stat found {};
    return fstat(fd, &found) == 0 ? found.st_ino : 0;
  }

  machine* m_ = nullptr;
  int rank_ = 0, process_ = 0;
};

}  // namespace played_driver
