// SPDX-License-Identifier: Apache-2.0
// PTX as the machine executes it: functions of decoded instructions, each with the code that carries it out.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "cuda/emulated/machine.hpp"

namespace emulated {

struct thread;
struct instruction;

// Where a value comes from.
enum class source_kind : std::uint8_t {
  none,
  constant,   // `bits`
  reg,        // register `index`, plus `bits` where it is an address
  shared,     // an address: `bits` bytes into the block's shared memory
  local,      // of the frame's local memory
  given,      // what the kernel was given, the same for all threads of the grid: its address, too
  parameter,  // of the frame's parameters: its own, and what it passes to functions
  special     // %tid.x and the like: `index` is a special_register
};

enum class special_register : std::uint16_t {
  tid_x,
  tid_y,
  tid_z,
  ntid_x,
  ntid_y,
  ntid_z,
  ctaid_x,
  ctaid_y,
  ctaid_z,
  nctaid_x,
  nctaid_y,
  nctaid_z,
  laneid,
  warpid,
  nwarpid,
  smid,
  nsmid,
  gridid,
  clock,
  clock64,
  globaltimer,
  globaltimer_lo,
  lanemask_eq,
  lanemask_lt,
  lanemask_le,
  lanemask_gt,
  lanemask_ge,
  dynamic_smem_size,
  total_smem_size,
  count
};

struct source {
  source_kind kind = source_kind::none;
  std::uint16_t index = 0;
  std::uint64_t bits = 0;
};

// What a register holds is read as the instruction's type says: bits above it have no meaning.
using execute_function = void (*)(thread&, instruction const&);

struct instruction {
  execute_function execute = nullptr;
  std::int32_t guard = -1;  // a predicate's register
  bool guard_negated = false;
  std::uint8_t bytes = 0;     // of one element, where memory is accessed
  std::uint8_t elements = 1;  // .v2, .v4
  std::uint8_t detail = 0;    // what else a handler asks for: a comparison, a mode
  source to, to2;             // `to2`: a second destination, as of setp and shfl
  source from[4];
  std::vector<source> parts;          // of a vector operand
  std::vector<std::int32_t> targets;  // of a branch: instructions
  function const* callee = nullptr;
  std::vector<std::pair<std::uint64_t, std::uint64_t>>
      passed;  // arguments of a call: offset in the frame, bytes
  std::pair<std::uint64_t, std::uint64_t> returned{0, 0};
  std::int32_t line = 0;  // of the text
};

struct function {
  std::string name;
  bool is_kernel = false, calls = false;
  std::vector<parameter> parameters;  // where the frame keeps them
  parameter result{0, 0};
  std::size_t parameter_bytes = 0;  // of the frame: what it is given, what it returns and passes on
  std::size_t local_bytes = 0;
  std::size_t shared_bytes = 0;
  std::size_t register_count = 0;
  std::vector<instruction> code;
  std::vector<std::pair<std::string, parameter>> names;  // of parameters and results
  std::string_view unread;                               // the text between its braces, until it is read
  std::int32_t unread_line = 0;
};

struct variable {
  std::byte* at = nullptr;
  std::size_t bytes = 0;
};

// Of a module. What functions are made of is read when one is asked for first.
struct program {
  std::string text;
  std::map<std::string, std::unique_ptr<function>, std::less<>> functions;
  std::map<std::string, kernel, std::less<>> kernels;
  std::map<std::string, variable, std::less<>> variables;
  std::map<std::string, std::uint64_t, std::less<>> shared;  // of no function: where they begin
  std::size_t shared_bytes = 0;                              // of those
  static constexpr std::size_t memory_bytes = std::size_t{64} << 20;
  std::byte* memory = nullptr;  // of all variables
  std::size_t used_bytes = 0;
  std::mutex mutex;
  static constexpr std::uint64_t behind_all = ~std::uint64_t{0};  // where dynamic shared memory begins

  program();
  ~program();
  program(program const&) = delete;
};

// ---- between the parser and what decodes

struct operand {
  source value;
  bool is_address = false;         // [value + value.bits]
  std::vector<source> vector;      // {a, b}
  std::string name;                // of what is no value: a label, a function
  std::vector<std::string> names;  // (a, b) of a call
  bool negated = false;            // !p
};

struct statement {
  std::vector<std::string> opcode;  // "ld", "global", "u32"
  std::vector<operand> operands;
  std::int32_t line = 0;

  [[nodiscard]] bool has(std::string_view part) const {
    for (std::size_t i = 1; i < opcode.size(); ++i)
      if (opcode[i] == part) return true;
    return false;
  }
  [[nodiscard]] std::string const& last() const { return opcode.back(); }
  [[nodiscard]] std::string text() const {
    std::string all = opcode[0];
    for (std::size_t i = 1; i < opcode.size(); ++i) all += "." + opcode[i];
    return all;
  }
};

// Each knows some instructions: the code for one, or null. May set what else the handler asks for.
execute_function decode_integers(statement const& s, instruction& i);
execute_function decode_floats(statement const& s, instruction& i);
execute_function decode_conversions(statement const& s, instruction& i);
execute_function decode_memory(statement const& s, instruction& i);
execute_function decode_multimem(statement const& s, instruction& i);
execute_function decode_control(statement const& s, instruction& i);

inline std::size_t bytes_of_type(std::string_view type) {
  if (type == "pred") return 1;
  std::size_t const digits = type.find_first_of("0123456789");
  if (digits == std::string_view::npos) throw std::runtime_error("no type: " + std::string(type));
  int bits = 0;
  for (std::size_t i = digits; i < type.size() && type[i] >= '0' && type[i] <= '9'; ++i)
    bits = bits * 10 + (type[i] - '0');
  return static_cast<std::size_t>(bits) / 8;
}

// Reads the instructions of a function, and of those it calls.
void read_function(program& of, function& what);
// Finds the code of a statement and its operands; throws if nobody knows it.
instruction decode(statement const& s);

}  // namespace emulated
