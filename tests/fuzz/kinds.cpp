// SPDX-License-Identifier: Apache-2.0
// libFuzzer: memory that is allocated, freed and asked for in any order, at few addresses. The cache of
// memory kinds says what the model does; a value of a registration is of the allocation that it was asked
// for.
#include <vector>

#include "collx/transport/cuda/registrations.hpp"
#include "fuzz/fuzzing.hpp"
#include "transport/fake_memory.hpp"

namespace {

using namespace collx;
using namespace collx::transport::cuda_parts;
using fake_memory::address_of;
using fake_memory::pointer_to;
using fake_memory::unit;

// Values are the identities they were made for; how many of each there are is counted.
struct maker {
  std::vector<int>* there;
  bool* fails;
  status make(memory_place const& place, std::uint64_t& value) noexcept {
    if (*fails) return status::system_failure;
    value = place.id;
    if (there->size() <= value) there->resize(value + 1);
    require(++(*there)[value] >= 1);
    return status::ok;
  }
  void undo(memory_place const& place, std::uint64_t& value) noexcept {
    require(value == place.id && --(*there)[value] >= 0);
  }
};
using table = registrations<std::uint64_t, maker>;

// With hits that are verified, or with frees that tell of themselves.
class run {
 public:
  explicit run(input& in)
      : in_(in),
        told_((in.byte() & 1) != 0),
        kinds_(fake_memory::driver{&space_}, 1 + in.byte() % 8),
        values_(maker{&there_, &fails_}, 1 + in.byte() % 8) {
    if (told_) kinds_.trust_hits();
  }

  void step() {
    std::uint32_t const what = in_.byte();
    std::uintptr_t const at = address_of(what >> 4);
    switch (what % 8) {
      case 0: allocate(at); break;
      case 1: release(at); break;
      case 2: values_.forget(at); break;
      case 3: leases_[in_.byte() % 4].end(); break;
      case 4: acquire(at); break;
      case 5: values_.sweep(kinds_.driver()); break;
      default: ask(at + in_.byte(), in_.byte() * 16); break;
    }
    for (table::lease const& held : leases_)
      if (held) require(held.value() == held.place().id && there_[held.value()] > 0);
  }

 private:
  void allocate(std::uintptr_t at) {
    std::uint32_t const shape = in_.byte();
    space_.allocate(at, unit * (1 + shape % 8), static_cast<place_kind>(1 + (shape >> 4) % 3),
                    static_cast<int>(shape >> 6));
  }
  void release(std::uintptr_t at) {
    if (!space_.begins_at(at)) return;
    if (told_) kinds_.forget(pointer_to(at));
    space_.release(at);
  }
  memory_answer ask(std::uintptr_t address, std::size_t bytes) {
    memory_place const truth = space_.at(address);
    memory_answer const answer = kinds_.find(pointer_to(address), bytes);
    require(answer.place == truth);
    bool const fits = truth.bytes == 0 || truth.reaches(address, bytes);
    require(answer.code == (fits ? status::ok : status::bad_argument));
    return answer;
  }
  void acquire(std::uintptr_t at) {
    std::uint32_t const how = in_.byte();
    memory_place const place = ask(at, 1).place;
    if (place.kind == place_kind::host) return;
    table::lease& lease = leases_[how % 4];
    fails_ = how >= 0xf0;
    status const code = values_.acquire(place, lease);
    require(static_cast<bool>(lease) == (code == status::ok));
    if (code == status::ok) require(lease.value() == place.id);
    fails_ = false;
  }

  input& in_;
  bool told_;
  bool fails_ = false;
  std::vector<int> there_;
  fake_memory::space space_;
  fake_memory::kinds kinds_;
  table values_;
  table::lease leases_[4];
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  input in{data, size};
  run now(in);
  while (in.left != 0) now.step();
  return 0;
}
