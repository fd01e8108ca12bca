// SPDX-License-Identifier: Apache-2.0
// Reads what a function does: names become registers, places in memory and numbers of instructions.
#include <array>
#include <cctype>
#include <cstring>

#include "cuda/emulated/program.hpp"
#include "cuda/emulated/tokens.hpp"

namespace emulated {
namespace {

constexpr std::array<std::string_view, static_cast<std::size_t>(special_register::count)> special_names{
    "%tid.x",          "%tid.y",          "%tid.z",       "%ntid.x",
    "%ntid.y",         "%ntid.z",         "%ctaid.x",     "%ctaid.y",
    "%ctaid.z",        "%nctaid.x",       "%nctaid.y",    "%nctaid.z",
    "%laneid",         "%warpid",         "%nwarpid",     "%smid",
    "%nsmid",          "%gridid",         "%clock",       "%clock64",
    "%globaltimer",    "%globaltimer_lo", "%lanemask_eq", "%lanemask_lt",
    "%lanemask_le",    "%lanemask_gt",    "%lanemask_ge", "%dynamic_smem_size",
    "%total_smem_size"};

class body_reader {
 public:
  body_reader(program& of, function& f) : program_(of), f_(f), in_(f.unread, f.unread_line) {
    scopes_.emplace_back();
    for (auto const& [name, where] : f.names)
      scopes_[0][name] = {f.is_kernel ? source_kind::given : source_kind::parameter, 0, where.offset};
    f_.shared_bytes = of.shared_bytes;
  }

  void read() {
    while (!in_.at_end()) read_one();
    for (auto const& [index, names] : branches_)
      for (std::string const& name : names) {
        auto const found = labels_.find(name);
        if (found == labels_.end()) in_.fail("no label " + name + " in " + f_.name);
        f_.code[index].targets.push_back(found->second);
      }
    // Whoever comes here has forgotten to return.
    statement end;
    end.opcode = {"ret"};
    f_.code.push_back(decode(end));
    f_.unread = {};
  }

 private:
  void read_one() {
    std::string_view const word = in_.peek();
    if (word == "{") scopes_.emplace_back(), in_.take();
    else if (word == "}") scopes_.pop_back(), in_.take();
    else if (word == ";") in_.take();
    else if (word == ".reg") read_registers();
    else if (word == ".local" || word == ".param" || word == ".shared") read_memory();
    else if (word == ".pragma") in_.take(), in_.take(), in_.expect(";");
    else if (word == "@") read_statement();
    else {
      std::string const name(in_.take());
      if (in_.take_if(":")) read_label(name);
      else read_statement(name);
    }
  }

  void read_label(std::string const& name) {
    if (in_.take_if(".branchtargets")) {
      do tables_[name].emplace_back(in_.take());
      while (in_.take_if(","));
      in_.expect(";");
    } else if (in_.take_if(".callprototype")) {
      while (!in_.take_if(";")) in_.take();
    } else if (!labels_.emplace(name, static_cast<std::int32_t>(f_.code.size())).second) {
      in_.fail("two labels " + name);
    }
  }

  void read_registers() {
    in_.take();
    if (in_.peek() == ".v2" || in_.peek() == ".v4") in_.fail("a register of a vector");
    // Of whatever type: all have 64 bits, and two of those follow each other where it is 128.
    is_pair_ = in_.take() == ".b128";
    do {
      std::string const name(in_.take());
      if (in_.take_if("<")) {
        std::size_t const count = std::stoull(std::string(in_.take()));
        in_.expect(">");
        for (std::size_t i = 0; i < count; ++i) add_register(name + std::to_string(i));
      } else {
        add_register(name);
      }
    } while (in_.take_if(","));
    in_.expect(";");
  }
  void add_register(std::string const& name) {
    if (f_.register_count > 65000) in_.fail("too many registers");
    scopes_.back()[name] = {source_kind::reg, static_cast<std::uint16_t>(f_.register_count), 0};
    f_.register_count += is_pair_ ? 2 : 1;
  }

  void read_memory() {
    std::string_view const space = in_.take();
    std::size_t alignment = 0, element = 0;
    while (in_.peek().starts_with('.')) {
      std::string_view const word = in_.take();
      if (word == ".align") alignment = std::stoull(std::string(in_.take()));
      else element = bytes_of_type(word.substr(1));
    }
    std::string const name(in_.take());
    std::size_t bytes = element;
    while (in_.take_if("[")) {
      bytes *= std::stoull(std::string(in_.take()));
      in_.expect("]");
    }
    in_.expect(";");
    if (alignment == 0) alignment = element;
    bool const shared = space == ".shared", local = space == ".local";
    if (shared && !f_.is_kernel) in_.fail("shared memory of a function");
    std::size_t& used = shared ? f_.shared_bytes : local ? f_.local_bytes : f_.parameter_bytes;
    used = (used + alignment - 1) / alignment * alignment;
    scopes_.back()[name] = {shared  ? source_kind::shared
                            : local ? source_kind::local
                                    : source_kind::parameter,
                            0, used};
    sizes_[name] = bytes;
    used += bytes;
  }

  // A guard, an opcode and its operands.
  void read_statement(std::string opcode = {}) {
    std::int32_t guard = -1;
    bool negated = false;
    if (opcode.empty()) {
      in_.expect("@");
      negated = in_.take_if("!");
      guard = find(in_.take()).index;
      opcode = in_.take();
    }
    statement s;
    s.line = in_.line();
    for (std::size_t at = 0; at <= opcode.size();) {
      // A dot divides; two colons do not.
      std::size_t const end = std::min(opcode.find('.', at), opcode.size());
      s.opcode.push_back(opcode.substr(at, end - at));
      at = end + 1;
    }
    bool const jumps = s.opcode[0] == "bra" || s.opcode[0] == "brx", calls = s.opcode[0] == "call";
    while (!in_.take_if(";")) {
      s.operands.push_back(jumps || calls ? read_target() : read_operand());
      in_.take_if(",");
    }
    instruction i;
    try {
      i = decode(s);
    } catch (std::exception const& e) {
      in_.fail(f_.name + ": " + s.text() + ": " + e.what());
    }
    i.guard = guard, i.guard_negated = negated, i.line = s.line;
    if (jumps) resolve_branch(s, i);
    if (calls) resolve_call(s, i);
    f_.code.push_back(std::move(i));
  }

  void resolve_branch(statement const& s, instruction& i) {
    std::string const& name = s.operands.back().name;
    if (s.opcode[0] == "bra") {
      branches_[f_.code.size()] = {name};
    } else {
      i.from[0] = find(s.operands[0].name);
      branches_[f_.code.size()] = tables_.at(name);
    }
  }

  void resolve_call(statement const& s, instruction& i) {
    std::size_t at = 0;
    if (!s.operands[0].names.empty()) {
      std::string const& name = s.operands[at++].names[0];
      i.returned = {find(name).bits, sizes_.at(name)};
    }
    std::string const& callee = s.operands.at(at++).name;
    auto const found = program_.functions.find(callee);
    if (found == program_.functions.end()) in_.fail("a call of " + callee + ", which is not here");
    if (found->second.get() != &f_ && !found->second->unread.empty()) read_function(program_, *found->second);
    i.callee = found->second.get();
    f_.calls = true;
    if (at < s.operands.size())
      for (std::string const& name : s.operands[at].names)
        i.passed.push_back({find(name).bits, sizes_.at(name)});
  }

  operand read_target() {
    operand o;
    if (in_.take_if("(")) {
      while (!in_.take_if(")")) {
        o.names.emplace_back(in_.take());
        in_.take_if(",");
      }
      if (o.names.empty()) o.name = "()";
    } else {
      o.name = in_.take();
    }
    return o;
  }

  operand read_operand() {
    operand o;
    if (in_.take_if("[")) {
      o.is_address = true;
      o.value = read_value();
      if (in_.take_if("+")) o.value.bits += read_value().bits;
      in_.expect("]");
    } else if (in_.take_if("{")) {
      while (!in_.take_if("}")) {
        o.vector.push_back(read_value());
        in_.take_if(",");
      }
      o.name = "{}";
    } else {
      o.negated = in_.take_if("!");
      o.value = read_value();
      if (in_.take_if("|")) o.vector = {read_value()}, o.name = "|";
      else if (in_.take_if("+")) o.value.bits += read_value().bits;
    }
    return o;
  }

  source read_value() {
    bool const negative = in_.take_if("-");
    std::string word(in_.take());
    if (std::isdigit(static_cast<unsigned char>(word[0])) == 0) return find(word);
    std::uint64_t bits = 0;
    if (word.starts_with("0f") || word.starts_with("0F")) {
      bits = std::stoull(word.substr(2), nullptr, 16);
    } else if (word.starts_with("0d") || word.starts_with("0D")) {
      bits = std::stoull(word.substr(2), nullptr, 16);
    } else {
      bits = std::stoull(word, nullptr, 0);
    }
    return {source_kind::constant, 0, negative ? 0 - bits : bits};
  }

  source find(std::string_view name) {
    if (name == "_") return {};
    for (std::size_t i = scopes_.size(); i-- > 0;)
      if (auto const found = scopes_[i].find(name); found != scopes_[i].end()) return found->second;
    for (std::size_t i = 0; i < special_names.size(); ++i)
      if (special_names[i] == name) return {source_kind::special, static_cast<std::uint16_t>(i), 0};
    if (name == "WARP_SZ") return {source_kind::constant, 0, 32};
    if (auto const found = program_.shared.find(name); found != program_.shared.end())
      return {source_kind::shared, 0, found->second};
    if (auto const found = program_.variables.find(name); found != program_.variables.end())
      return {source_kind::constant, 0, reinterpret_cast<std::uintptr_t>(found->second.at)};
    in_.fail("what is " + std::string(name) + " in " + f_.name + "?");
  }

  program& program_;
  function& f_;
  tokens in_;
  bool is_pair_ = false;
  std::vector<std::map<std::string, source, std::less<>>> scopes_;
  std::map<std::string, std::size_t> sizes_;  // of memory
  std::map<std::string, std::int32_t> labels_;
  std::map<std::string, std::vector<std::string>> tables_;
  std::map<std::size_t, std::vector<std::string>> branches_;
};

}  // namespace

void read_function(program& of, function& what) { body_reader(of, what).read(); }

instruction decode(statement const& s) {
  instruction i;
  if (!s.operands.empty()) {
    i.to = s.operands[0].value;
    if (s.operands[0].name == "|") i.to2 = s.operands[0].vector[0];
    for (std::size_t k = 1; k < s.operands.size() && k < 5; ++k) i.from[k - 1] = s.operands[k].value;
  }
  for (auto const each :
       {decode_integers, decode_floats, decode_conversions, decode_memory, decode_multimem, decode_control})
    if ((i.execute = each(s, i)) != nullptr) return i;
  throw std::runtime_error("an instruction that this machine does not know");
}

}  // namespace emulated
