// SPDX-License-Identifier: Apache-2.0
// Both ways to run ranks on this machine: on_threads and on_processes.
#pragma once

#include "collx/bootstrap/processes.hpp"
#include "collx/bootstrap/threads.hpp"
