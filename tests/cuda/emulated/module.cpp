// SPDX-License-Identifier: Apache-2.0
// What a module declares: kernels, functions, variables. The bodies of functions are left for later.
#include <cstring>

#include <sys/mman.h>

#include "cuda/emulated/program.hpp"
#include "cuda/emulated/tokens.hpp"

namespace emulated {
namespace {

std::uint64_t number(tokens& in) {
  std::string const word(in.take());
  return std::stoull(word, nullptr, 0);
}

std::size_t rounded(std::size_t offset, std::size_t alignment) {
  return (offset + alignment - 1) / alignment * alignment;
}

// What precedes the name of a variable or a parameter, and the length behind it.
struct declaration {
  std::string name;
  std::size_t bytes = 0, element_bytes = 0, alignment = 0;
};

declaration declare(tokens& in) {
  declaration d;
  std::size_t alignment = 0;
  while (in.peek().starts_with('.')) {
    std::string_view const word = in.take();
    if (word == ".align") {
      std::size_t const n = number(in);
      if (alignment == 0 || d.element_bytes == 0) alignment = n;  // behind .ptr: of what is pointed to
    } else if (word == ".v2" || word == ".v4") {
      in.fail("a variable of vectors");
    } else if (word == ".attribute") {
      while (in.take() != ")") {
      }
    } else if (word != ".ptr" && word != ".global" && word != ".shared" && word != ".const" &&
               word != ".local") {
      d.element_bytes = bytes_of_type(word.substr(1));
    }
  }
  d.name = in.take();
  std::size_t count = 1;
  while (in.take_if("[")) {
    if (in.take_if("]")) {
      count = 0;  // of an extern one: unknown
    } else {
      count *= number(in);
      in.expect("]");
    }
  }
  d.bytes = count * d.element_bytes;
  d.alignment = alignment != 0 ? alignment : d.element_bytes;
  return d;
}

class reader {
 public:
  explicit reader(program& into) : into_(into), in_(into.text) {}

  void read() {
    while (!in_.at_end()) {
      std::string_view const word = in_.take();
      if (word == ".version" || word == ".address_size") in_.take();
      else if (word == ".target") read_target();
      else if (word == ".extern") is_extern_ = true;
      else if (word == ".visible" || word == ".weak" || word == ".common") continue;
      else if (word == ".global" || word == ".const") read_variable();
      else if (word == ".shared") read_shared();
      else if (word == ".func" || word == ".entry") read_function(word == ".entry");
      else if (word == ";") continue;
      else in_.fail("a module that says '" + std::string(word) + "'");
      if (word != ".extern") is_extern_ = false;
    }
  }

 private:
  void read_target() {
    in_.take();
    while (in_.take_if(",")) in_.take();
  }

  void read_variable() {
    declaration const d = declare(in_);
    if (is_extern_) in_.fail("a variable of another module: " + d.name);
    into_.used_bytes = rounded(into_.used_bytes, std::max(d.alignment, std::size_t{16}));
    variable& v = into_.variables[d.name];
    v.at = into_.memory + into_.used_bytes, v.bytes = d.bytes;
    into_.used_bytes += d.bytes;
    if (into_.used_bytes > program::memory_bytes) in_.fail("too many variables");
    if (in_.take_if("=")) {
      std::byte* at = v.at;
      read_initial(at, d.element_bytes);
    }
    in_.expect(";");
  }

  void read_initial(std::byte*& at, std::size_t bytes) {
    if (in_.take_if("{")) {
      while (!in_.take_if("}")) {
        read_initial(at, bytes);
        in_.take_if(",");
      }
      return;
    }
    bool const is_negative = in_.take_if("-");
    std::string word(in_.take());
    if (word == "generic") {
      in_.expect("(");
      word = in_.take();
      in_.expect(")");
    }
    std::uint64_t value = 0;
    if (auto const found = into_.variables.find(word); found != into_.variables.end())
      value = reinterpret_cast<std::uintptr_t>(found->second.at);
    else if (word.starts_with("0f") || word.starts_with("0d") || word.starts_with("0F") ||
             word.starts_with("0D"))
      value = std::stoull(word.substr(2), nullptr, 16);
    else if (std::isdigit(static_cast<unsigned char>(word[0])) != 0) value = std::stoull(word, nullptr, 0);
    else in_.fail("a variable that begins as '" + word + "'");
    if (in_.take_if("+")) value += number(in_);
    if (is_negative) value = 0 - value;
    std::memcpy(at, &value, bytes);
    at += bytes;
  }

  void read_shared() {
    declaration const d = declare(in_);
    in_.expect(";");
    if (d.bytes == 0) {  // as long as the launch says, behind all others
      into_.shared[d.name] = program::behind_all;
      return;
    }
    into_.shared_bytes = rounded(into_.shared_bytes, d.alignment);
    into_.shared[d.name] = into_.shared_bytes;
    into_.shared_bytes += d.bytes;
  }

  // `.param .u64 name, ...)`: where they lie.
  void read_parameters(function& f, std::vector<std::pair<std::string, parameter>>& into) {
    while (!in_.take_if(")")) {
      in_.expect(".param");
      declaration const d = declare(in_);
      f.parameter_bytes = rounded(f.parameter_bytes, std::max(d.alignment, std::size_t{1}));
      into.push_back({d.name, {f.parameter_bytes, d.bytes}});
      f.parameter_bytes += d.bytes;
      in_.take_if(",");
    }
  }

  void read_function(bool is_kernel) {
    auto made = std::make_unique<function>();
    function& f = *made;
    f.is_kernel = is_kernel;
    std::vector<std::pair<std::string, parameter>> result, given;
    if (in_.take_if("(")) read_parameters(f, result);
    f.name = in_.take();
    if (in_.take_if("(")) read_parameters(f, given);
    for (auto const& [name, where] : given) f.parameters.push_back(where);
    if (!result.empty()) f.result = result[0].second;
    for (auto const& each : result) given.push_back(each);
    f.names = given;
    kernel k;
    while (!in_.at_end() && in_.peek() != "{" && in_.peek() != ";") {
      std::string_view const word = in_.take();
      if (word == ".maxntid" || word == ".reqntid") {
        k.max_threads = static_cast<unsigned>(number(in_));
        while (in_.take_if(",")) k.max_threads *= static_cast<unsigned>(number(in_));
      }
    }
    if (in_.take_if(";")) {  // declared only
      if (!into_.functions.contains(f.name)) into_.functions[f.name] = std::move(made);
      return;
    }
    read_body(f);
    if (is_kernel) {
      k.name = f.name, k.parameters = f.parameters, k.parameter_bytes = f.parameter_bytes;
      into_.kernels[f.name] = k;
    }
    auto& slot = into_.functions[f.name];
    if (slot != nullptr) *slot = std::move(f);
    else slot = std::move(made);
  }

  void read_body(function& f) {
    f.unread_line = in_.line();
    in_.expect("{");
    std::size_t const begin = in_.at_end() ? 0 : in_.at();
    for (int depth = 1; depth != 0;) {
      if (in_.at_end()) in_.fail("no end of " + f.name);
      if (in_.peek() == "{") ++depth;
      else if (in_.peek() == "}") --depth;
      if (depth == 0) f.unread = in_.text().substr(begin, in_.at() - begin);
      in_.take();
    }
  }

  program& into_;
  tokens in_;
  bool is_extern_ = false;
};

}  // namespace

program::program()
    : memory(static_cast<std::byte*>(mmap(nullptr, memory_bytes, PROT_READ | PROT_WRITE,
                                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {
  if (memory == MAP_FAILED) throw std::runtime_error("no memory for the variables of a module");
}
program::~program() { munmap(memory, memory_bytes); }

module::module(std::string_view ptx) :program_(std::make_unique<program>()) {
  program_->text = ptx;
  while (!program_->text.empty() && program_->text.back() == '\0') program_->text.pop_back();
  reader(*program_).read();
}
module::~module() = default;

kernel const* module::find(std::string_view mangled_name) const {
  std::lock_guard const one_at_a_time(program_->mutex);
  auto const found = program_->kernels.find(mangled_name);
  if (found == program_->kernels.end()) return nullptr;
  kernel& k = found->second;
  function& body = *program_->functions.find(mangled_name)->second;
  if (!body.unread.empty()) read_function(*program_, body);
  k.body = &body;
  k.static_shared_bytes = body.shared_bytes, k.local_bytes = body.local_bytes;
  return &k;
}

std::byte* module::variable(std::string_view mangled_name, std::size_t* bytes) const {
  auto const found = program_->variables.find(mangled_name);
  if (found == program_->variables.end()) return nullptr;
  if (bytes != nullptr) *bytes = found->second.bytes;
  return found->second.at;
}

}  // namespace emulated
