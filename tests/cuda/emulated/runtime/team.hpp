// SPDX-License-Identifier: Apache-2.0
// Multicast objects: a team of devices, and what memory each has bound. Kept in a file in memory, which
// processes share; each maps the memory of the others when its kernels touch it first.
#pragma once

#include <memory>
#include <string>

#include "cuda/emulated/runtime/memory.hpp"

namespace emulated::runtime {

struct team_record;  // what all processes see

class team {
 public:
  team() = default;
  team(team const&) = delete;
  ~team();

  // In a new file, which `fd` becomes; false if there is no room for it.
  [[nodiscard]] bool make(int& fd, unsigned devices, std::size_t bytes);
  [[nodiscard]] bool open(int fd);

  [[nodiscard]] std::size_t bytes() const;
  [[nodiscard]] bool is_complete() const;
  // Empty, or why not.
  [[nodiscard]] std::string add(int ordinal);
  [[nodiscard]] std::string bind(std::size_t offset, std::shared_ptr<physical> memory, std::size_t at,
                                 std::size_t bytes);
  [[nodiscard]] std::string unbind(int ordinal, std::size_t offset, std::size_t bytes);
  // As find_replicas(), by the offset in the object.
  [[nodiscard]] char const* find(std::size_t offset, std::size_t bytes, replicas& found);

 private:
  struct view {  // of a member's memory
    std::uint64_t number = 0;
    std::byte* at = nullptr;
    std::size_t bytes = 0;
  };
  void close(view& what);

  team_record* record_ = nullptr;
  view views_[replicas::most];
  std::shared_ptr<physical> bound_[replicas::most];  // by this process
};

// An object as memory is handed round (memory.hpp): null if there is no room, or no object.
[[nodiscard]] std::shared_ptr<physical> make_team(unsigned devices, std::size_t bytes, bool is_shareable);
[[nodiscard]] std::shared_ptr<physical> adopt_team(int fd);  // takes it only if it is one

}  // namespace emulated::runtime
