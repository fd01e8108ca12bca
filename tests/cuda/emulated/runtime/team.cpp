// SPDX-License-Identifier: Apache-2.0
// What members of a team share, and how kernels find the memory of all of them.
#include "cuda/emulated/runtime/team.hpp"

#include <algorithm>
#include <cerrno>
#include <map>

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

namespace emulated::runtime {

struct team_record {
  struct member {
    int ordinal = 0;
    // What is bound: a descriptor of a process, its file, and where in it. No two bindings have one number;
    // 0: nothing is.
    pid_t process = 0;
    int fd = -1;
    std::uint64_t file = 0, number = 0;
    std::size_t offset = 0, bytes = 0, at = 0;
  };
  pthread_mutex_t mutex;
  std::size_t bytes;
  unsigned devices, added;
  std::uint64_t last_number;
  member members[replicas::most];  // by ordinal

  [[nodiscard]] member* find(int ordinal) {
    auto const end = members + added;
    auto const found = std::find_if(members, end, [&](member const& m) { return m.ordinal == ordinal; });
    return found == end ? nullptr : found;
  }
};

namespace {

constexpr char team_file_name[] = "collx_emulated_switch";

struct guard {
  explicit guard(team_record& of) : of_(of) {
    // Whoever died with it had changed one member at most, which was its own.
    if (pthread_mutex_lock(&of_.mutex) == EOWNERDEAD) (void)pthread_mutex_consistent(&of_.mutex);
  }
  guard(guard const&) = delete;
  ~guard() { (void)pthread_mutex_unlock(&of_.mutex); }
  team_record& of_;
};

[[nodiscard]] team_record* map_record(int fd) {
  void* const at = mmap(nullptr, sizeof(team_record), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return at == MAP_FAILED ? nullptr : static_cast<team_record*>(at);
}

// By file: handles of one object are one team in a process.
[[nodiscard]] std::map<std::uint64_t, std::weak_ptr<physical>>& objects() {
  static auto* const made = new std::map<std::uint64_t, std::weak_ptr<physical>>;
  return *made;
}

[[nodiscard]] std::shared_ptr<physical> enter(int fd, std::shared_ptr<team> made) {
  auto const object = std::make_shared<physical>();
  object->fd = fd;
  object->bytes = made->bytes();
  object->joined = std::move(made);
  objects()[number_of_file(fd)] = object;
  return object;
}

}  // namespace

team::~team() {
  for (view& each : views_) close(each);
  if (record_ != nullptr) (void)munmap(record_, sizeof *record_);
}

bool team::make(int& fd, unsigned devices, std::size_t bytes) {
  fd = memfd_create(team_file_name, MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, sizeof(team_record)) != 0 || (record_ = map_record(fd)) == nullptr)
    return false;
  record_->devices = devices;
  record_->bytes = bytes;
  pthread_mutexattr_t shared;
  (void)pthread_mutexattr_init(&shared);
  (void)pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
  (void)pthread_mutexattr_setrobust(&shared, PTHREAD_MUTEX_ROBUST);
  (void)pthread_mutex_init(&record_->mutex, &shared);
  (void)pthread_mutexattr_destroy(&shared);
  return true;
}
bool team::open(int fd) { return (record_ = map_record(fd)) != nullptr; }

std::size_t team::bytes() const { return record_->bytes; }
bool team::is_complete() const {
  guard const held(*record_);
  return record_->added == record_->devices;
}

std::string team::add(int ordinal) {
  guard const held(*record_);
  if (record_->added == record_->devices) return "all devices that the object is for were added before";
  if (record_->find(ordinal) != nullptr) return "the device was added before";
  team_record::member* at = record_->members + record_->added++;
  for (; at != record_->members && at[-1].ordinal > ordinal; --at) *at = at[-1];
  *at = {};
  at->ordinal = ordinal;
  return {};
}

std::string team::bind(std::size_t offset, std::shared_ptr<physical> memory, std::size_t at,
                       std::size_t bytes) {
  guard const held(*record_);
  if (record_->added != record_->devices) return "not all devices are added: on a GPU it waits for them";
  team_record::member* const m = record_->find(memory->ordinal);
  if (m == nullptr) return "the memory is of a device that is not in the team";
  if (m->number != 0) return "the device has memory bound already";
  *m = {m->ordinal, getpid(), memory->fd, number_of_file(memory->fd), ++record_->last_number,
        offset,     bytes,    at};
  bound_[m - record_->members] = std::move(memory);
  return {};
}

std::string team::unbind(int ordinal, std::size_t offset, std::size_t bytes) {
  guard const held(*record_);
  team_record::member* const m = record_->find(ordinal);
  if (m == nullptr || m->number == 0) return "the device has no memory bound";
  if (m->offset != offset || m->bytes != bytes) return "another range than was bound";
  m->number = 0;
  close(views_[m - record_->members]);
  bound_[m - record_->members].reset();
  return {};
}

void team::close(view& what) {
  if (what.at != nullptr) (void)munmap(what.at, what.bytes);
  what = {};
}

char const* team::find(std::size_t offset, std::size_t bytes, replicas& found) {
  guard const held(*record_);
  if (record_->added != record_->devices) return "of an object that lacks devices";
  for (found.count = 0; found.count < record_->devices; ++found.count) {
    team_record::member const& m = record_->members[found.count];
    if (m.number == 0 || offset < m.offset || offset - m.offset + bytes > m.bytes)
      return "where not every device has memory bound";
    view& seen = views_[found.count];
    if (seen.number != m.number) {
      close(seen);
      int const fd = open_file_of(m.process, m.fd, m.file);
      std::size_t const length = m.at + m.bytes;
      void* const at = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
      if (fd >= 0) (void)::close(fd);
      if (at == MAP_FAILED) return "where the memory of a device has gone with its process";
      seen = {m.number, static_cast<std::byte*>(at), length};
    }
    found.at[found.count] = seen.at + m.at + (offset - m.offset);
  }
  return nullptr;
}

std::shared_ptr<physical> make_team(unsigned devices, std::size_t bytes, bool is_shareable) {
  auto made = std::make_shared<team>();
  int fd = -1;
  if (!made->make(fd, devices, bytes)) return nullptr;
  auto object = enter(fd, std::move(made));
  object->is_shareable = is_shareable;
  return object;
}

std::shared_ptr<physical> adopt_team(int fd) {
  if (name_of_file(fd).find(team_file_name) == std::string::npos) return nullptr;
  if (auto const known = objects()[number_of_file(fd)].lock(); known != nullptr) {
    (void)::close(fd);
    return known;
  }
  auto made = std::make_shared<team>();
  if (!made->open(fd)) return nullptr;
  auto object = enter(fd, std::move(made));
  object->is_shareable = true;
  return object;
}

}  // namespace emulated::runtime
