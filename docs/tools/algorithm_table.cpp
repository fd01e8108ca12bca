// SPDX-License-Identifier: Apache-2.0
// Writes docs/algorithms.md and its pictures from the one list of algorithms:
//   algorithm_table DIRECTORY           writes them below DIRECTORY (docs)
//   algorithm_table --check DIRECTORY   compares them with what is there; a test runs this
// Every schedule is proved for 1 to 16 ranks and every root before it gets a row.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "collx/algo/all.hpp"
#include "collx/schedule/render.hpp"
#include "collx/schedule/verify.hpp"
#include "formula.hpp"

namespace {

using namespace collx;

constexpr rank_t proved_size_max = 16;
constexpr rank_t described_size_max = 128;
constexpr rank_t served_size_max = 4096;
constexpr rank_t picture_size = 4;

// File name, relative to docs/, and content.
using file_set = std::map<std::string, std::string>;

template <class Schedule>
std::vector<rank_t> supported_sizes(rank_t last) {
  std::vector<rank_t> sizes;
  for (rank_t n = 2; n <= last; ++n)
    if (collx::supports<Schedule>(n)) sizes.push_back(n);
  return sizes;
}

// One that serves fewer than before has another row, also where nothing is proved any more.
template <class Schedule>
std::string sizes_text() {
  bool all = true;
  bool even = true;
  bool powers = true;
  rank_t in_all = 0;
  for (rank_t n = 1; n <= served_size_max; ++n) {
    bool const served = collx::supports<Schedule>(n);
    all = all && served;
    even = even && served == (n == 1 || n % 2 == 0);
    powers = powers && served == algo::detail::is_power_of_two(n);
    in_all += served ? 1 : 0;
  }
  if (all) return "all";
  if (even) return "even";
  if (powers) return "powers of two";
  std::string text = "some:";
  if (!collx::supports<Schedule>(1)) text += " not 1, but";
  for (rank_t const n : supported_sizes<Schedule>(proved_size_max)) text += " " + std::to_string(n);
  return text + " ..., " + std::to_string(in_all) + " of 1 to " + std::to_string(served_size_max);
}

// How many of the contract's blocks M bytes are: those of the largest buffer that a rank has.
template <class Contract>
std::int32_t blocks_of_largest_buffer(rank_t n) {
  std::int32_t most = 0;
  for (rank_t rank = 0; rank < n; ++rank) {
    problem const p{rank, n, 0};
    most = std::max({most, Contract::input(p).count, Contract::output(p).count});
  }
  return most;
}

// So many chunks as a multiple of M bytes; nothing where ranks have no buffers, as in a barrier.
template <class Schedule>
tools::fraction in_vectors(rank_t n, std::int64_t chunks) {
  using contract = typename Schedule::contract;
  std::int64_t const per_block = collx::chunk_count<Schedule>(n) / contract::blocks(n);
  std::int64_t const largest = blocks_of_largest_buffer<contract>(n);
  return largest == 0 ? tools::fraction{} : tools::fraction{chunks, per_block * largest};
}

template <class Schedule>
tools::fraction bytes_sent(rank_t n) {
  return in_vectors<Schedule>(n, collx::documented_cost<Schedule>(n).chunks);
}

template <class Schedule>
std::string rounds_text() {
  std::vector<tools::sample> samples;
  for (rank_t const n : supported_sizes<Schedule>(described_size_max))
    samples.push_back({n, {collx::documented_cost<Schedule>(n).rounds}});
  return tools::describe(samples, tools::round_formulas());
}

template <class Schedule>
std::string messages_text() {
  std::vector<tools::sample> samples;
  for (rank_t const n : supported_sizes<Schedule>(described_size_max))
    samples.push_back({n, {collx::documented_cost<Schedule>(n).messages}});
  return tools::describe(samples, tools::round_formulas());
}

template <class Schedule>
std::string bytes_text() {
  std::vector<tools::sample> samples;
  for (rank_t const n : supported_sizes<Schedule>(described_size_max))
    samples.push_back({n, bytes_sent<Schedule>(n)});
  return tools::describe(samples, tools::vector_formulas());
}

// From five ranks on: with fewer, some algorithms need less than their formula says.
template <class Schedule>
std::string scratch_text() {
  std::vector<tools::sample> samples;
  for (rank_t const n : supported_sizes<Schedule>(described_size_max))
    if (n > 4) samples.push_back({n, in_vectors<Schedule>(n, scratch_chunks<Schedule>(n))});
  return tools::describe(samples, tools::vector_formulas());
}

template <class Schedule>
std::string numbers_text(rank_t n) {
  if (!collx::supports<Schedule>(n)) return "-";
  return std::to_string(collx::documented_cost<Schedule>(n).rounds) + ", " +
         tools::decimal(bytes_sent<Schedule>(n)) + " M";
}

template <class Schedule>
char const* level_text() {
  constexpr char const* names[] = {"`none`", "`same_on_every_rank`", "`run_to_run`", "`any_transport`",
                                   "`any_size`"};
  return names[static_cast<std::size_t>(collx::level_of<Schedule>())];
}

// Ends the program if the schedule is wrong; otherwise the least depth that does for every size.
template <class Schedule>
std::int32_t proved_depth(char const* algorithm) {
  std::int32_t depth = 1;
  for (rank_t n = 1; n <= proved_size_max; ++n) {
    if (!collx::supports<Schedule>(n)) continue;
    for (rank_t root = 0; root < (Schedule::contract::rooted ? n : 1); ++root) {
      verdict const found = verify<Schedule>(n, root);
      if (!found.ok()) {
        std::fprintf(stderr, "%s %s with %d ranks and root %d is wrong: %s\n", algorithm,
                     Schedule::contract::name, n, root, explain(found.what));
        std::exit(1);
      }
      std::int32_t const needed = minimal_depth<Schedule>(n, root);
      depth = needed > depth ? needed : depth;
    }
  }
  return depth;
}

template <class Schedule>
std::string row(char const* algorithm) {
  std::string text = std::string("| `") + algorithm + "` | " + rounds_text<Schedule>() + " | " +
                     messages_text<Schedule>() + " | " + bytes_text<Schedule>();
  for (rank_t const n : {4, 8, 16}) text += " | " + numbers_text<Schedule>(n);
  text += " | " + scratch_text<Schedule>() + " | " + std::to_string(proved_depth<Schedule>(algorithm));
  text += std::string(" | ") + (!Schedule::contract::from_all  ? "-"
                                : keeps_rank_order<Schedule>() ? "yes"
                                                               : "no");
  text += std::string(" | ") + level_text<Schedule>();
  return text + " | " + sizes_text<Schedule>() + " |\n";
}

constexpr char const* introduction =
    "# The algorithms\n"
    "\n"
    "<!-- Generated by docs/tools/algorithm_table.cpp. Do not edit: change the algorithm or the tool, then "
    "run\n"
    "     cmake --build build/dev --target algorithm_table && build/dev/tests/docs/algorithm_table docs -->\n"
    "\n"
    "Written by `docs/tools/algorithm_table.cpp` from the list in `include/collx/algo/all.hpp`; a test "
    "compares.\n"
    "Each schedule was proved for 1 to 16 ranks by the verifier while this page was written, costs "
    "included.\n"
    "\n"
    "For n ranks and M bytes, the largest buffer that a rank has: the vector; in `reduce_scatter` and "
    "`all_gather`\n"
    "the whole one, n blocks; in `all_to_all` what one rank sends or gets, n blocks; in `gather` and "
    "`scatter` the n blocks\n"
    "of the root.\n"
    "\n"
    "- *rounds*: messages on the longest chain of dependent ones; what a small vector costs.\n"
    "- *messages*: sent by the rank that sends most; what a fast network with a slow sender costs.\n"
    "- *bytes*: what the busiest rank sends; what a large vector costs.\n"
    "- p is the largest power of two <= n, r = n - p, and Σ runs over all i >= 0 with 2ⁱ < p; q is the "
    "largest "
    "power of four\n"
    "  <= n, f = ⌊n/q⌋, and t the largest power of four < n; s(x) is the sum of x's digits to the base of "
    "four, "
    "d(K) says how many\n"
    "  digits but 0 the numbers below n have to the base of K; g is what becomes of Σ min(2ⁱ, r), its upper "
    "bound, where what\n"
    "  partners have is not a run of neighbours' blocks.\n"
    "- *n = 4, 8, 16*: rounds and bytes as numbers. For a rooted collective, all are those of the worst "
    "root.\n"
    "- *scratch*: memory for partial results that fit into no buffer of the caller (from 5 ranks on).\n"
    "- *depth*: messages that one rank must be able to have in flight to another, or it waits for ever (up "
    "to 16 ranks).\n"
    "- *rank order*: contributions are combined in the order of ranks, so the operator need not commute.\n"
    "- *same bits*: the [level of reproducibility](reproducibility.md) that it has for every operator.\n"
    "- the pictures: time runs down, a box is a step, a number is the chunk that an arrow carries.\n"
    "\n"
    "One rank alone sends nothing. Every algorithm of `all_reduce`, run on nothing, serves as a `barrier` "
    "too.\n"
    "[add_an_algorithm.md](add_an_algorithm.md) shows how to get a row here.\n";

constexpr char const* table_head =
    "| algorithm | rounds | messages | bytes | n = 4 | n = 8 | n = 16 | scratch | depth | rank order | same "
    "bits | ranks |\n"
    "|---|---|---|---|---|---|---|---|---|---|---|---|\n";

template <class Contract>
void write_section(file_set& files) {
  std::string rows;
  std::string pictures;
  for_each_schedule<algo::all, type_list<Contract>>([&]<class Algorithm, class, class Schedule>() {
    rows += row<Schedule>(Algorithm::name);
    if (!collx::supports<Schedule>(picture_size)) return;
    std::string const name = std::string(Contract::name) + "_" + Algorithm::name;
    std::string const title = std::string(Algorithm::name) + " " + Contract::name;
    std::string const caption = title + " of " + std::to_string(picture_size) + " ranks";
    files["img/algo/" + name + ".svg"] = render_svg<Schedule>(picture_size, 0, caption);
    pictures += "\n### " + title + "\n\n![" + caption + "](img/algo/" + name + ".svg)\n";
  });
  files["algorithms.md"] += std::string("\n## ") + Contract::name + "\n\n" + table_head + rows + pictures;
}

file_set generate() {
  file_set files;
  files["algorithms.md"] = introduction;
  contract::all::for_each([&]<class Contract>() { write_section<Contract>(files); });
  return files;
}

std::string read(std::filesystem::path const& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

int write(file_set const& files, std::filesystem::path const& docs) {
  std::filesystem::create_directories(docs / "img/algo");
  for (auto const& [name, content] : files) {
    std::ofstream out(docs / name, std::ios::binary);
    out << content;
    if (!out.flush()) {
      std::fprintf(stderr, "cannot write %s\n", (docs / name).c_str());
      return 1;
    }
  }
  std::printf("wrote %zu files below %s\n", files.size(), docs.c_str());
  return 0;
}

int check(file_set const& files, std::filesystem::path const& docs) {
  int wrong = 0;
  for (auto const& [name, content] : files)
    if (read(docs / name) != content) {
      std::fprintf(stderr, "%s is not what the list of algorithms gives\n", name.c_str());
      ++wrong;
    }
  std::error_code missing;
  for (auto const& entry : std::filesystem::directory_iterator(docs / "img/algo", missing))
    if (!files.contains("img/algo/" + entry.path().filename().string())) {
      std::fprintf(stderr, "%s belongs to no algorithm: delete it\n", entry.path().c_str());
      ++wrong;
    }
  if (wrong > 0) std::fprintf(stderr, "write them again with: algorithm_table %s\n", docs.c_str());
  return wrong > 0 ? 1 : 0;
}

}  // namespace

int main(int argument_count, char** arguments) {
  bool const checks = argument_count == 3 && std::strcmp(arguments[1], "--check") == 0;
  if (!checks && (argument_count != 2 || arguments[1][0] == '-')) {
    std::fprintf(stderr, "usage: algorithm_table [--check] DIRECTORY\n");
    return 2;
  }
  file_set const files = generate();
  return checks ? check(files, arguments[2]) : write(files, arguments[1]);
}
