// SPDX-License-Identifier: Apache-2.0
// Reductions of structs with the user's operators, and copies, as kernels; compared with the host where there
// is a GPU.
#include <collx/op/location.hpp>

#include "device_trials.cuh"

namespace {

template <int Words, class Word>
struct block {
  Word words[Words];
};

// Neither associative nor commutative: only folding from the left gives these values.
struct mix {
  template <int Words, class Word>
  COLLX_HD block<Words, Word> operator()(block<Words, Word> const& a, block<Words, Word> const& b) const {
    block<Words, Word> result;
    COLLX_UNROLL
    for (int i = 0; i < Words; ++i) result.words[i] = static_cast<Word>(a.words[i] * 31 + b.words[i]);
    return result;
  }
};

using block_12 = block<3, unsigned>;
using block_40 = block<5, unsigned long long>;
using location = collx::value_index<int, int>;

}  // namespace

int main(int argc, char** argv) {
  using device_trials::combining, device_trials::copying, device_trials::fill_bytes;
  return device_trials::run(
      {
          combining<block_12, mix>("12 bytes", "mix", fill_bytes<block_12>),
          combining<block_40, mix>("40 bytes", "mix", fill_bytes<block_40>),
          combining<location, collx::min_location_t>("value and place", "minloc", fill_bytes<location>),
          copying<unsigned char>("unsigned char"),
          copying<unsigned short>("unsigned short"),
          copying<float>("float"),
          copying<double>("double"),
          copying<block_12>("12 bytes"),
          copying<block_40>("40 bytes"),
      },
      argc, argv);
}
