// SPDX-License-Identifier: Apache-2.0
// The main function of every test executable. Who asks for test cases that there are not has made a
// mistake: a test that runs nothing would pass. What a case says it has SKIPPED: is added to the file that
// COLLX_TEST_SKIPS names: CTest, for which the test has passed, shows nothing of it.
#define DOCTEST_CONFIG_IMPLEMENT
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <doctest/doctest.h>

namespace {

unsigned chosen = 0;  // test cases that passed the filters

struct counting : doctest::IReporter {
  explicit counting(doctest::ContextOptions const&) {}
  void test_run_end(doctest::TestRunStats const& run) override { chosen = run.numTestCasesPassingFilters; }
  void report_query(doctest::QueryData const&) override { chosen = 1; }
  void test_run_start() override {}
  void test_case_start(doctest::TestCaseData const& begun) override { test_case = begun.m_name; }
  void test_case_reenter(doctest::TestCaseData const&) override {}
  void test_case_end(doctest::CurrentTestCaseStats const&) override {}
  void test_case_exception(doctest::TestCaseException const&) override {}
  void subcase_start(doctest::SubcaseSignature const&) override {}
  void subcase_end() override {}
  void log_assert(doctest::AssertData const&) override {}
  void log_message(doctest::MessageData const& said) override {
    char const* const path = std::getenv("COLLX_TEST_SKIPS");
    if (path == nullptr || std::strstr(said.m_string.c_str(), "SKIPPED:") == nullptr) return;
    if (std::FILE* const file = std::fopen(path, "a")) {
      std::fprintf(file, "%s (%s)\n", said.m_string.c_str(), test_case);
      std::fclose(file);
    }
  }
  void test_case_skipped(doctest::TestCaseData const&) override {}

  char const* test_case = "";
};

}  // namespace

DOCTEST_REGISTER_LISTENER("counting", 1, counting);

int main(int argc, char** argv) {
  doctest::Context context(argc, argv);
  int const code = context.run();
  if (chosen != 0 || context.shouldExit()) return code;
  std::fprintf(stderr, "no test case is named so, or stands in such a file\n");
  return 1;
}
