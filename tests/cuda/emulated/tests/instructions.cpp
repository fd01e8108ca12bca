// SPDX-License-Identifier: Apache-2.0
// The emulated GPU's instructions, one by one, against what the PTX manual says of them; threads that meet at
// a barrier, functions that are called, and what a kernel must not do.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "cuda/emulated/machine.hpp"

namespace emulated {
std::atomic<std::uint64_t> ranges_changed{0};
namespace {
range all{};  // that kernels may touch
}
bool find_range(std::uintptr_t at, range& found) {
  if (at < all.begin || at >= all.end) return false;
  found = all;
  return true;
}
// A multicast address: four words of the first device, and of the second.
char const* find_replicas(std::uintptr_t at, std::size_t bytes, replicas& found) {
  if (at < all.begin || at + bytes > all.begin + 32) return "which is no multicast address";
  found.at[0] = reinterpret_cast<std::byte*>(at), found.at[1] = found.at[0] + 32;
  found.count = 2;
  return nullptr;
}
}  // namespace emulated

namespace {

constexpr char const* head = ".version 8.7\n.target sm_90\n.address_size 64\n";

// What the text leaves in its output, one word for each thread. `rest`: of the module, before the kernel.
struct outcome {
  std::vector<std::uint64_t> words;
  std::string fault;
};
outcome run(std::string const& body, std::vector<std::uint64_t> const& input = {}, unsigned threads = 1,
            std::string const& rest = {}, unsigned blocks = 1) {
  std::string const text = std::string(head) + rest +
                           ".visible .entry k(.param .u64 k_out, .param .u64 k_in) {\n"
                           ".reg .pred %p<9>; .reg .b16 %rs<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 "
                           "%f<9>; .reg .f64 %fd<9>;\n"
                           "ld.param.u64 %rd0, [k_out]; ld.param.u64 %rd1, [k_in];\n"
                           "mov.u32 %r0, %tid.x; mul.wide.u32 %rd8, %r0, 8; add.s64 %rd0, %rd0, %rd8;\n" +
                           body + "\nret;\n}\n";
  emulated::module const code(text);
  std::vector<std::uint64_t> memory(64 + threads, 0);
  std::copy(input.begin(), input.end(), memory.begin());
  auto const begin = reinterpret_cast<std::uintptr_t>(memory.data());
  emulated::all = {begin, begin + 8 * memory.size()};
  ++emulated::ranges_changed;
  std::uint64_t const given[2]{begin + 64 * 8, begin};
  emulated::launch what{
      &code, code.find("k"), {blocks, 1, 1}, {threads, 1, 1}, 0, std::vector<std::byte>(sizeof given)};
  std::memcpy(what.parameters.data(), given, sizeof given);
  outcome done;
  done.fault = emulated::run(what);
  done.words.assign(memory.begin() + 64, memory.end());
  return done;
}

std::uint64_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }
std::uint64_t bits(double value) { return std::bit_cast<std::uint64_t>(value); }
std::uint64_t low(std::int64_t value) { return static_cast<std::uint32_t>(value); }

struct line {
  char const* text;  // leaves its result in %r1, %rd2, %rs1, %f1 or %fd1
  char const* how;   // it is stored
  std::vector<std::uint64_t> input;
  std::uint64_t result;
};

}  // namespace

TEST_CASE("emulated instructions: what they leave") {
  constexpr char const* r = "st.global.u32 [%rd0], %r1;";
  constexpr char const* rd = "st.global.u64 [%rd0], %rd2;";
  constexpr char const* rs = "st.global.u16 [%rd0], %rs1;";
  constexpr char const* f = "st.global.f32 [%rd0], %f1;";
  constexpr char const* fd = "st.global.f64 [%rd0], %fd1;";
  std::string const two = "ld.global.u32 %r2, [%rd1]; ld.global.u32 %r3, [%rd1+8];";
  std::string const wide = "ld.global.u64 %rd3, [%rd1]; ld.global.u64 %rd4, [%rd1+8];";
  std::string const floats = "ld.global.f32 %f2, [%rd1]; ld.global.f32 %f3, [%rd1+8];";
  std::string const doubles = "ld.global.f64 %fd2, [%rd1]; ld.global.f64 %fd3, [%rd1+8];";
  struct named {
    std::string text;
    char const* how;
    std::vector<std::uint64_t> input;
    std::uint64_t result;
  };
  std::uint64_t const min32 = 0x80000000, min64 = 0x8000000000000000;
  std::vector<named> const lines{
      {two + "add.s32 %r1, %r2, %r3;", r, {0xffffffff, 2}, 1},
      {two + "sub.s32 %r1, %r2, %r3;", r, {1, 2}, low(-1)},
      {two + "mul.lo.s32 %r1, %r2, %r3;", r, {0x10001, 0x10001}, 0x20001},
      {two + "mul.hi.s32 %r1, %r2, %r3;", r, {low(-2), 3}, low(-1)},
      {two + "mul.hi.u32 %r1, %r2, %r3;", r, {low(-2), 3}, 2},
      {two + "mul.wide.s32 %rd2, %r2, %r3;", rd, {low(-2), 3}, static_cast<std::uint64_t>(-6)},
      {two + "mul.wide.u32 %rd2, %r2, %r3;", rd, {low(-1), 2}, 0x1fffffffe},
      {two + "mad.lo.s32 %r1, %r2, %r3, 7;", r, {low(-2), 3}, 1},
      {two + "div.s32 %r1, %r2, %r3;", r, {low(-7), 2}, low(-3)},
      {two + "rem.s32 %r1, %r2, %r3;", r, {low(-7), 2}, low(-1)},
      {two + "div.s32 %r1, %r2, %r3;", r, {min32, low(-1)}, min32},
      {two + "div.u32 %r1, %r2, %r3;", r, {low(-7), 2}, 0x7ffffffc},
      {two + "min.s32 %r1, %r2, %r3;", r, {low(-7), 2}, low(-7)},
      {two + "max.u32 %r1, %r2, %r3;", r, {low(-7), 2}, low(-7)},
      {two + "neg.s32 %r1, %r2;", r, {5}, low(-5)},
      {two + "abs.s32 %r1, %r2;", r, {low(-5)}, 5},
      {two + "shl.b32 %r1, %r2, %r3;", r, {1, 31}, min32},
      {two + "shl.b32 %r1, %r2, %r3;", r, {1, 32}, 0},
      {two + "shr.s32 %r1, %r2, %r3;", r, {min32, 40}, low(-1)},
      {two + "shr.u32 %r1, %r2, %r3;", r, {min32, 31}, 1},
      {two + "shf.l.wrap.b32 %r1, %r2, %r3, 33;", r, {min32, 1}, 3},
      {two + "shf.r.clamp.b32 %r1, %r2, %r3, 40;", r, {5, 9}, 9},
      {two + "prmt.b32 %r1, %r2, %r3, 0x7610;", r, {0x33221100, 0x77665544}, 0x77661100},
      {two + "prmt.b32 %r1, %r2, %r3, 0x8888;", r, {0x80, 0}, low(-1)},
      {two + "lop3.b32 %r1, %r2, %r3, 0, 0x3c;", r, {12, 10}, 6},
      {two + "bfi.b32 %r1, %r2, %r3, 8, 4;", r, {0xff, 0}, 0xf00},
      {two + "bfe.s32 %r1, %r2, 4, 4;", r, {0xf0}, low(-1)},
      {two + "bfe.u32 %r1, %r2, 4, 4;", r, {0xf0}, 15},
      {two + "clz.b32 %r1, %r2;", r, {1}, 31},
      {two + "popc.b32 %r1, %r2;", r, {0xf0f}, 8},
      {two + "brev.b32 %r1, %r2;", r, {1}, min32},
      {two + "not.b32 %r1, %r2;", r, {1}, 0xfffffffe},
      {two + "setp.lt.s32 %p1|%p2, %r2, %r3; selp.u32 %r1, 3, 4, %p2;", r, {low(-1), 2}, 4},
      {two + "setp.lt.u32 %p1, %r2, %r3; selp.u32 %r1, 3, 4, %p1;", r, {low(-1), 2}, 4},
      {two + "setp.ne.s32 %p1, %r2, 0; setp.eq.and.s32 %p2, %r3, 2, %p1; selp.u32 %r1, 3, 4, %p2;",
       r,
       {0, 2},
       4},
      {two + "setp.ne.s32 %p1, %r2, 0; setp.eq.and.s32 %p2, %r3, 2, !%p1; selp.u32 %r1, 3, 4, %p2;",
       r,
       {0, 2},
       3},
      {wide + "add.s64 %rd2, %rd3, %rd4;", rd, {~std::uint64_t{0}, 2}, 1},
      {wide + "mul.lo.s64 %rd2, %rd3, %rd4;", rd, {std::uint64_t{1} << 40, std::uint64_t{1} << 23}, min64},
      {wide + "mul.hi.u64 %rd2, %rd3, %rd4;", rd, {min64, 4}, 2},
      {wide + "shr.s64 %rd2, %rd3, 63;", rd, {min64}, ~std::uint64_t{0}},
      {wide + "mov.b64 {%r1, %r2}, %rd3;", r, {0x200000001}, 1},
      {two + "mov.b64 %rd2, {%r2, %r3};", rd, {1, 2}, 0x200000001},
      {wide + "{.reg .b128 q; mov.b128 q, {%rd3, %rd4}; mov.b128 {%rd5, %rd2}, q;}", rd, {1, 2}, 2},
      {two + "cvt.u16.u32 %rs1, %r2;", rs, {0x12345}, 0x2345},
      {two + "cvt.u16.u32 %rs2, %r2; cvt.s32.s16 %r1, %rs2;", r, {0x8000}, low(-32768)},
      {two + "cvt.s64.s32 %rd2, %r2;", rd, {low(-1)}, ~std::uint64_t{0}},
      {two + "cvt.s16.s8 %rs2, %r2; cvt.s32.s16 %r1, %rs2;", r, {0x80}, low(-128)},
      {two + "cvt.sat.u8.s32 %r1, %r2;", r, {low(-5)}, 0},
      {two + "cvt.rn.f32.s32 %f1, %r2;", f, {low(-3)}, bits(-3.F)},
      {two + "cvt.rn.f32.u32 %f1, %r2;", f, {0x1000001}, bits(16777216.F)},
      {two + "cvt.rz.f32.u32 %f1, %r2;", f, {0x1ffffff}, bits(33554430.F)},
      {floats + "cvt.rzi.s32.f32 %r1, %f2;", r, {bits(-2.7F)}, low(-2)},
      {floats + "cvt.rni.s32.f32 %r1, %f2;", r, {bits(2.5F)}, 2},
      {floats + "cvt.rzi.u32.f32 %r1, %f2;", r, {bits(-2.7F)}, 0},
      {floats + "cvt.rzi.s32.f32 %r1, %f2;", r, {bits(1e20F)}, 0x7fffffff},
      {floats + "cvt.rzi.s32.f32 %r1, %f2;", r, {bits(NAN)}, 0},
      {floats + "cvt.rn.f16x2.f32 %r1, %f2, %f3;", r, {bits(1.F), bits(-2.F)}, 0x3c00c000},
      {floats + "cvt.rn.bf16x2.f32 %r1, %f2, %f3;", r, {bits(1.F), bits(-2.F)}, 0x3f80c000},
      {floats + "cvt.rn.f16.f32 %rs1, %f2;", rs, {bits(65520.F)}, 0x7c00},
      {floats + "cvt.rn.f16.f32 %rs1, %f2;", rs, {bits(65519.F)}, 0x7bff},
      {floats + "cvt.rn.f16.f32 %rs1, %f2;", rs, {bits(5.9604645e-8F)}, 1},
      {floats + "cvt.rn.f16.f32 %rs1, %f2;", rs, {bits(2.9802322e-8F)}, 0},
      {floats + "cvt.rn.bf16.f32 %rs1, %f2;", rs, {bits(std::bit_cast<float>(0x3f808000))}, 0x3f80},
      {floats + "cvt.rn.bf16.f32 %rs1, %f2;", rs, {bits(std::bit_cast<float>(0x3f818000))}, 0x3f82},
      // 8 bits: 448 and 57344 are the largest, 2^-9 and 2^-16 the least.
      {floats + "cvt.rn.satfinite.e4m3x2.f32 %rs1, %f2, %f3;", rs, {bits(1.F), bits(-448.F)}, 0x38fe},
      {floats + "cvt.rn.satfinite.e4m3x2.f32 %rs1, %f2, %f3;", rs, {bits(1e9F), bits(-INFINITY)}, 0x7efe},
      {floats + "cvt.rn.satfinite.e4m3x2.f32 %rs1, %f2, %f3;", rs, {bits(NAN), bits(-0.F)}, 0x7f80},
      {floats + "cvt.rn.satfinite.e4m3x2.f32 %rs1, %f2, %f3;", rs, {bits(0x1p-9F), bits(0x1p-10F)}, 0x0100},
      {floats + "cvt.rn.satfinite.e4m3x2.f32 %rs1, %f2, %f3;", rs, {bits(1.0625F), bits(1.1875F)}, 0x383a},
      {floats + "cvt.rn.satfinite.e5m2x2.f32 %rs1, %f2, %f3;", rs, {bits(1.F), bits(-57344.F)}, 0x3cfb},
      {floats + "cvt.rn.satfinite.e5m2x2.f32 %rs1, %f2, %f3;", rs, {bits(INFINITY), bits(-61440.F)}, 0x7bfb},
      {floats + "cvt.rn.satfinite.e5m2x2.f32 %rs1, %f2, %f3;", rs, {bits(NAN), bits(0x1p-16F)}, 0x7f01},
      {two + "cvt.u16.u32 %rs2, %r2; cvt.rn.f16x2.e4m3x2 %r1, %rs2;", r, {0x7ef8}, 0x5f00dc00},
      {two + "cvt.u16.u32 %rs2, %r2; cvt.rn.f16x2.e4m3x2 %r1, %rs2;", r, {0x0187}, 0x1800a300},
      {two + "cvt.u16.u32 %rs2, %r2; cvt.rn.f16x2.e4m3x2 %r1, %rs2;", r, {0x7f80}, 0x7fff8000},
      {two + "cvt.u16.u32 %rs2, %r2; cvt.rn.f16x2.e5m2x2 %r1, %rs2;", r, {0x7cfb}, 0x7c00fb00},
      {two + "cvt.rn.satfinite.e4m3x2.f16x2 %rs1, %r2;", rs, {0x3c00dc00}, 0x38f8},
      {floats + "cvt.sat.f32.f32 %f1, %f2;", f, {bits(NAN)}, bits(0.F)},
      {floats + "add.f32 %f1, %f2, %f3;", f, {bits(1.F), bits(2.F)}, bits(3.F)},
      {floats + "add.rz.f32 %f1, %f2, %f3;", f, {bits(1.F), bits(1e-9F)}, bits(1.F)},
      {floats + "add.rp.f32 %f1, %f2, %f3;", f, {bits(1.F), bits(1e-9F)}, bits(std::nextafter(1.F, 2.F))},
      {floats + "fma.rn.f32 %f1, %f2, %f3, 0fBF800000;",
       f,
       {bits(1.0000001F), bits(1.0000001F)},
       bits(std::fma(1.0000001F, 1.0000001F, -1.F))},
      {floats + "min.f32 %f1, %f2, %f3;", f, {bits(NAN), bits(2.F)}, bits(2.F)},
      {floats + "max.f32 %f1, %f2, %f3;", f, {bits(-0.F), bits(0.F)}, bits(0.F)},
      {floats + "min.f32 %f1, %f2, %f3;", f, {bits(0.F), bits(-0.F)}, bits(-0.F)},
      {floats + "div.rn.f32 %f1, %f2, %f3;", f, {bits(1.F), bits(3.F)}, bits(1.F / 3.F)},
      {floats + "setp.neu.f32 %p1, %f2, %f3; selp.u32 %r1, 1, 0, %p1;", r, {bits(NAN), bits(NAN)}, 1},
      {floats + "setp.ne.f32 %p1, %f2, %f3; selp.u32 %r1, 1, 0, %p1;", r, {bits(NAN), bits(NAN)}, 0},
      {floats + "setp.gt.f32 %p1, %f2, %f3; selp.u32 %r1, 1, 0, %p1;", r, {bits(3.F), bits(2.F)}, 1},
      {floats + "setp.nan.f32 %p1, %f2, %f3; selp.u32 %r1, 1, 0, %p1;", r, {bits(3.F), bits(NAN)}, 1},
      {doubles + "mul.f64 %fd1, %fd2, %fd3;", fd, {bits(1.5), bits(3.)}, bits(4.5)},
      {doubles + "cvt.rn.f32.f64 %f1, %fd2;", f, {bits(0.1)}, bits(0.1F)},
      {doubles + "selp.f64 %fd1, %fd2, %fd3, 1;", fd, {bits(1.5), bits(3.)}, bits(1.5)},
      {"atom.global.add.u32 %r1, [%rd1], 5; ld.global.u32 %r2, [%rd1]; mad.lo.s32 %r1, %r2, 100, %r1;",
       r,
       {7},
       1207},
      {"atom.global.cas.b32 %r1, [%rd1], 7, 9; ld.global.u32 %r1, [%rd1];", r, {7}, 9},
      {"red.global.max.s32 [%rd1], -3; ld.global.u32 %r1, [%rd1];", r, {low(-7)}, low(-3)},
      {"atom.exch.relaxed.sys.b32 %r1, [%rd1], 4;", r, {7}, 7},
      {"ld.global.v2.u32 {%r1, %r2}, [%rd1]; sub.s32 %r1, %r2, %r1;", r, {0x900000004}, 5},
      {"ld.global.s8 %r1, [%rd1];", r, {0x80}, low(-128)},
      {"ld.global.u8 %r1, [%rd1];", r, {0x80}, 128},
      {".local .align 8 .b8 d[16]; mov.u64 %rd3, d; cvta.local.u64 %rd4, %rd3; st.u32 [%rd4+4], 77; "
       "ld.local.u32 %r1, [%rd3+4];",
       r,
       {},
       77},
      {".shared .align 4 .b8 s[8]; mov.u64 %rd3, s; st.shared.u32 [s+4], 78; ld.shared.u32 %r1, [%rd3+4];",
       r,
       {},
       78},
  };
  for (named const& each : lines) {
    CAPTURE(each.text);
    outcome const done = run(each.text + each.how, each.input);
    CHECK(done.fault == "");
    CHECK(done.words[0] == each.result);
  }
}

TEST_CASE("emulated instructions: what the switch adds up, and spreads") {
  auto const words = [](std::uint64_t first, std::uint64_t second) {
    return std::vector<std::uint64_t>{first, 0, 0, 0, second, 0, 0, 0};
  };
  auto const left = [](std::string const& body, std::vector<std::uint64_t> const& input) {
    outcome const done = run(body, input);
    CHECK(done.fault == "");
    return done.words[0];
  };
  CHECK(left("multimem.ld_reduce.relaxed.sys.global.add.f32 %f1, [%rd1]; st.global.f32 [%rd0], %f1;",
             words(bits(1.5F), bits(-4.F))) == bits(-2.5F));
  // In floats: 2048 + 1 is no number of 16 bits, and neither is 2049; to even.
  CHECK(left("multimem.ld_reduce.relaxed.sys.global.add.acc::f32.f16x2 %r1, [%rd1]; st.global.u32 [%rd0], "
             "%r1;",
             words(0x68003c00, 0x3c003c00)) == 0x68004000);
  CHECK(left("multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v2.bf16x2 {%r2, %r1}, [%rd1]; "
             "st.global.u32 [%rd0], %r1;",
             words(0x3f80bf80ull << 32, 0x4000bf80ull << 32)) == 0x4040c000);
  CHECK(left("multimem.st.relaxed.sys.global.v2.f32 [%rd1+8], {0f3F800000, 0f40000000}; ld.u64 %rd2, "
             "[%rd1+40]; st.global.u64 [%rd0], %rd2;",
             {}) == (bits(2.F) << 32 | bits(1.F)));
  std::string const beyond = run("multimem.st.relaxed.sys.global.f32 [%rd1+32], 0f3F800000;").fault;
  CHECK(beyond.find("invalid multimem.st of 4 bytes") == 0);
  CHECK(beyond.find("no multicast address") != std::string::npos);
  CHECK(run("multimem.ld_reduce.relaxed.sys.global.add.v2.f32 {%f1, %f2}, [%rd1+4];")
            .fault.find("misaligned") == 0);
}

TEST_CASE("emulated threads: a barrier parts what is before it from what is behind") {
  // Each leaves its number for its left neighbour.
  outcome const done =
      run(".shared .align 4 .b8 s[512]; mov.u64 %rd2, s; mul.wide.u32 %rd3, %r0, 4; add.s64 %rd3, %rd2, %rd3;"
          "st.shared.u32 [%rd3], %r0; bar.sync 0; add.u32 %r1, %r0, 1; and.b32 %r1, %r1, 127;"
          "mul.wide.u32 %rd3, %r1, 4; add.s64 %rd3, %rd2, %rd3; ld.shared.u32 %r2, [%rd3]; st.global.u32 "
          "[%rd0], %r2;",
          {}, 128);
  CHECK(done.fault == "");
  for (unsigned k = 0; k < 128; ++k) CHECK(done.words[k] == (k + 1) % 128);
}

TEST_CASE("emulated threads: of two blocks, one waits for the other") {
  outcome const done =
      run("mov.u32 %r1, %ctaid.x; setp.ne.s32 %p1, %r1, 0; @%p1 bra tell;"
          "look: ld.acquire.sys.u32 %r2, [%rd1]; setp.eq.s32 %p2, %r2, 0; @%p2 bra look;"
          "st.global.u32 [%rd0], %r2; ret; tell: st.release.sys.u32 [%rd1], 5;",
          {0}, 1, {}, 2);
  CHECK(done.fault == "");
  CHECK(done.words[0] == 5);
}

TEST_CASE("emulated functions: arguments, results, and one that calls itself") {
  std::string const sum =
      ".func (.param .b32 r0) below(.param .b32 n0) { .reg .b32 %r<4>; .reg .pred %p<2>; ld.param.u32 %r1, "
      "[n0];"
      "setp.eq.s32 %p1, %r1, 0; @%p1 bra done; sub.s32 %r2, %r1, 1;"
      "{ .param .b32 a; st.param.b32 [a+0], %r2; .param .b32 r; call.uni (r), below, (a); ld.param.b32 %r3, "
      "[r+0]; }"
      "add.s32 %r1, %r1, %r3; done: st.param.b32 [r0+0], %r1; ret; }\n";
  outcome const done =
      run("{ .param .b32 a; st.param.b32 [a], 10; .param .b32 r; call.uni (r), below, (a); ld.param.b32 %r1, "
          "[r]; }"
          "st.global.u32 [%rd0], %r1;",
          {}, 1, sum);
  CHECK(done.fault == "");
  CHECK(done.words[0] == 55);
}

TEST_CASE("emulated kernels: what they must not do is told, with the thread that did it") {
  CHECK(run("ld.global.u32 %r1, [%rd1+2];").fault.find("misaligned load of 4 bytes") == 0);
  std::string const beyond = run("st.global.u32 [%rd0+8], 1;", {}, 3).fault;
  CHECK(beyond.find("invalid store of 4 bytes") == 0);
  CHECK(beyond.find("thread (2,0,0)") != std::string::npos);
  CHECK(run("mov.u64 %rd2, 0; ld.u64 %rd2, [%rd2];").fault.find("at 0x0") != std::string::npos);
  CHECK(run("setp.eq.s32 %p1, %r0, 0; @%p1 bra out; bar.sync 0; out:", {}, 4).fault.find("a barrier") == 0);
  // Half of a warp at one barrier, half at another; or two warps, unless they are counted; or at one, in a
  // function that is called in two places.
  std::string const halves =
      "and.b32 %r1, %r0, 1; setp.eq.s32 %p1, %r1, 0; @%p1 bra other; bar.sync 0; bra out; "
      "other: bar.sync 0; out:";
  CHECK(run(halves, {}, 4).fault.find("a barrier that threads come to in two places") == 0);
  std::string const warps =
      "setp.lt.u32 %p1, %r0, 32; @%p1 bra other; bar.sync 0; bra out; other: bar.sync 0; out:";
  CHECK(run(warps, {}, 64).fault.find("a barrier that threads come to in two places") == 0);
  std::string const counted =
      "setp.lt.u32 %p1, %r0, 32; @%p1 bra other; bar.sync 1, 64; bra out; other: bar.sync 1, 64; out:";
  CHECK(run(counted, {}, 64).fault == "");
  std::string const meet = ".func meet() { bar.sync 0; ret; }\n";
  std::string const calls =
      "setp.lt.u32 %p1, %r0, 32; @%p1 bra other; call.uni meet; bra out; other: call.uni meet; out:";
  CHECK(run(calls, {}, 64, meet).fault.find("a barrier that threads come to in two places") == 0);
  CHECK(run("call.uni meet; call.uni meet;", {}, 64, meet).fault == "");
  CHECK(run("trap;").fault.find("a trap") == 0);
  CHECK_THROWS_WITH_AS(run("frobnicate.u32 %r1, %r2;"), doctest::Contains("does not know"),
                       std::runtime_error);
}
