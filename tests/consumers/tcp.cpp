// SPDX-License-Identifier: Apache-2.0
// A program that needs the component tcp: it has only to compile and link.
#include <collx/bootstrap/network.hpp>

int main() {
  collx::bootstrap::network_settings const chosen;
  return collx::bootstrap::meet_over_network({}, chosen, collx::net::secret()).size - 1;
}
