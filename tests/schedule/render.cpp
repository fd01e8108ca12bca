// SPDX-License-Identifier: Apache-2.0
// Pictures and texts of schedules: what they say, and that they say it of every algorithm.
#include "collx/schedule/render.hpp"

#include <string>

#include <doctest/doctest.h>

#include "collx/algo/all.hpp"
#include "collx/schedule/type_list.hpp"
#include "schedule/exchange.hpp"

namespace {

using namespace collx;

int occurrences(std::string const& text, std::string const& word) {
  int count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

struct draw {
  template <class Algorithm, class Contract, class Schedule>
  void operator()() const {
    for (rank_t const n : {1, 2, 4, 8}) {
      CAPTURE(std::string(Algorithm::name));
      CAPTURE(std::string(Contract::name));
      CAPTURE(n);
      std::string const svg = render_svg<Schedule>(n);
      CHECK(svg.starts_with("<svg "));
      CHECK(svg.ends_with("</svg>\n"));
      CHECK(occurrences(svg, "<text") == occurrences(svg, "</text>"));
      CHECK(occurrences(svg, ">rank ") == n);
      // Every rank but one must be heard of, or hear of the result.
      CHECK(occurrences(svg, "marker-end") >= n - 1);
      std::string const text = render_text<Schedule>(n);
      CHECK(occurrences(text, "rank " + std::to_string(n - 1) + "\n") == 1);
    }
  }
};

// Waits for its own message: no picture of it can be right, but there must be one.
struct waits_for_itself : wrong::exchange {
  static constexpr std::int32_t step_count(problem) { return 1; }
  static constexpr primitive step(problem p, std::int32_t) {
    primitive both = wrong::exchange::step(p, 1);
    both.to = only(wrong::other(p));
    return both;
  }
};

}  // namespace

TEST_CASE("render_text: a ring of three") {
  CHECK(render_text<algo::ring::all_reduce>(3).starts_with(
      "rank 0\n"
      "  step 0: send input[2] to 1\n"
      "  step 1: reduce rank 2 + input[1], send [1] to 1\n"
      "  step 2: reduce rank 2 + input[0], store in output[0], send [0] to 1; complete\n"
      "  step 3: take output[2] from 2, send on to 1\n"
      "  step 4: take output[1] from 2\n"
      "rank 1\n"));
}

TEST_CASE("render_text: sets of peers, copies, pushes and own chunks") {
  CHECK(render_text<wrong::swap>(2) ==
        "rank 0\n"
        "  step 0: send input[0] to 1\n"
        "  step 1: take output[0] from own input[0], output[1] from 1\n"
        "rank 1\n"
        "  step 0: send input[1] to 0\n"
        "  step 1: take output[0] from 0, output[1] from own input[1]\n");
  CHECK(render_text<wrong::exchange>(2).find("send input[0] to 1; as a copy\n") != std::string::npos);
  CHECK(render_text<wrong::push_halves>(2).find(
            "reduce input[0] + rank 1, store in output[0], send [0] to 1; complete; pushed\n") !=
        std::string::npos);
  CHECK(render_text<algo::direct_one_shot::all_gather>(20).find(", ..., ") != std::string::npos);
}

TEST_CASE("render_text: messages that carry nothing") {
  CHECK(render_text<algo::dissemination::barrier>(2) ==
        "rank 0\n"
        "  step 0: send nothing to 1\n"
        "  step 1: take nothing from 1\n"
        "rank 1\n"
        "  step 0: send nothing to 0\n"
        "  step 1: take nothing from 0\n");
}

TEST_CASE("render_svg: an arrow for every message") {
  CHECK(occurrences(render_svg<wrong::exchange>(2), "marker-end") == 2);
  CHECK(occurrences(render_svg<algo::direct_two_shot::all_reduce>(4), "marker-end") == 24);
  // Arrows around the edge of a ring are drawn in two halves.
  CHECK(occurrences(render_svg<algo::ring::all_reduce>(4), "marker-end") == 24 + 6);
}

TEST_CASE("render_svg: names in brackets are titles, too") {
  std::string const svg = render_svg<wrong::exchange>({2, 1}, 0, "hierarchical<ring & chain>");
  CHECK(svg.find("<title>hierarchical&lt;ring &amp; chain&gt;") != std::string::npos);
}

TEST_CASE("render: every algorithm has a text and a picture") {
  for_each_schedule<algo::all, contract::all>(draw{});
}

TEST_CASE("render: a schedule that cannot run is drawn all the same") {
  CHECK(occurrences(render_svg<waits_for_itself>(2), "marker-end") == 2);
}
