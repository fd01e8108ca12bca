// SPDX-License-Identifier: Apache-2.0
// Everything a small program needs: all collectives, algorithms and host transports of one machine.
// Larger programs include the headers they use. Heavy transports are never pulled in from here.
#pragma once

#include "collx/algo/all.hpp"
#include "collx/bootstrap/connect.hpp"
#include "collx/bootstrap/local.hpp"
#include "collx/collective/agreement.hpp"
#include "collx/collective/all_gather.hpp"
#include "collx/collective/all_gather_v.hpp"
#include "collx/collective/all_reduce.hpp"
#include "collx/collective/all_to_all.hpp"
#include "collx/collective/all_to_all_v.hpp"
#include "collx/collective/barrier.hpp"
#include "collx/collective/broadcast.hpp"
#include "collx/collective/exclusive_scan.hpp"
#include "collx/collective/gather.hpp"
#include "collx/collective/gather_v.hpp"
#include "collx/collective/reduce.hpp"
#include "collx/collective/reduce_scatter.hpp"
#include "collx/collective/reduce_scatter_v.hpp"
#include "collx/collective/scan.hpp"
#include "collx/collective/scatter.hpp"
#include "collx/collective/scatter_v.hpp"
#include "collx/collective/split.hpp"
#include "collx/transport/shm.hpp"
#include "collx/transport/threads.hpp"
