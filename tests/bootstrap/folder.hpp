// SPDX-License-Identifier: Apache-2.0
// A folder of a test's own, in which ranks meet.
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <string>

#include <doctest/doctest.h>

class folder {
 public:
  folder() {
    char name[] = "/tmp/collx_test_XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    path_ = name;
  }
  folder(folder const&) = delete;
  ~folder() {
    (void)unlink(at("meet").c_str());
    rmdir(path_.c_str());
  }
  [[nodiscard]] std::string at(char const* name) const { return path_ + "/" + name; }
  [[nodiscard]] std::string const& path() const { return path_; }

 private:
  std::string path_;
};
