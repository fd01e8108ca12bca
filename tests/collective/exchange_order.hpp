// SPDX-License-Identifier: Apache-2.0
// Receivers that take long messages one after the other, by calls of their own, in an order in which one of
// them comes last: what a sender has for the others must reach them all the same.
#pragma once

#include <vector>

#include "collx/collective/barrier.hpp"
#include "collx/collective/exchange.hpp"
#include "collx/collective/send_receive.hpp"
#include "require.hpp"

namespace exchanges {

using collx::rank_t;

inline std::vector<unsigned char> told(std::size_t bytes, int first) {
  std::vector<unsigned char> text(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    text[i] = static_cast<unsigned char>(first + static_cast<int>(i % 251));
  return text;
}

template <class List>
void run(List& list, bool started) {
  if (started) list.start().wait();
  else list.run();
}

// Rank 0 has a message of `long_bytes` for the last rank, and listed behind it one of each of `bytes` for all
// ranks between, where 0 is listed too. Each of those then tells the last one that it has it, which only then
// takes what is for it.
template <class Transport>
void last_takes_late(collx::communicator<Transport>& comm, std::size_t long_bytes,
                     std::vector<std::size_t> const& bytes, bool started) {
  rank_t const me = comm.rank(), last = comm.size() - 1;
  std::vector<unsigned char> const long_one = told(long_bytes, 7), word(1, 1);
  std::vector<std::vector<unsigned char>> texts;
  for (std::size_t const each : bytes) texts.push_back(told(each, 3));
  auto const capacity = static_cast<std::int32_t>(bytes.size() * static_cast<std::size_t>(comm.size()) + 1);
  collx::exchange list(comm, capacity);
  if (me == 0) {
    list.send(long_one, last);
    for (rank_t to = 1; to < last; ++to)
      for (auto const& text : texts) list.send(text, to);
    run(list, started);
  } else if (me != last) {
    std::vector<std::vector<unsigned char>> came;
    for (std::size_t const each : bytes) came.emplace_back(each);
    for (auto& text : came) list.receive(text, 0);
    run(list, started);
    require(came == texts, "a message behind one that nobody takes");
    collx::send(comm, word, last);
  } else {
    std::vector<unsigned char> heard(1), came(long_bytes);
    for (rank_t from = 1; from < last; ++from) collx::receive(comm, heard, from);
    list.receive(came, 0);
    run(list, started);
    require(came == long_one, "the message that was taken last");
  }
  collx::barrier(comm);
}

template <class Transport>
void every_late_last(collx::communicator<Transport>& comm) {
  std::size_t const staging = comm.engine().endpoint().staging_bytes();
  for (bool const started : {false, true})
    for (std::size_t const each : {std::size_t{0}, std::size_t{20}, std::size_t{500}, std::size_t{3000},
                                   staging / 16, 3 * staging + 77})
      last_takes_late(comm, 5 * staging, {each, 100, each}, started);
}

// Once two ranks are connected, nine messages to one wait for no receive: everybody sends nine to everybody
// before anybody takes one.
template <class Transport>
void nine_before_one(collx::communicator<Transport>& comm, std::size_t bytes) {
  rank_t const me = comm.rank();
  auto const others = [&](auto const& with) {
    for (rank_t r = 0; r < comm.size(); ++r)
      if (r != me) with(r);
  };
  std::vector<unsigned char> word(1);
  collx::exchange greeting(comm);
  std::vector<std::vector<unsigned char>> heard(static_cast<std::size_t>(comm.size()), word);
  others([&](rank_t r) {
    greeting.send(word, r);
    greeting.receive(heard[static_cast<std::size_t>(r)], r);
  });
  greeting.run();
  constexpr int most = 9;
  others([&](rank_t to) {
    for (int k = 0; k < most; ++k) collx::send(comm, told(bytes, me + k), to);
  });
  std::vector<unsigned char> came(bytes);
  others([&](rank_t from) {
    for (int k = 0; k < most; ++k) {
      collx::receive(comm, came, from);
      require(came == told(bytes, from + k), "one of nine messages");
    }
  });
  collx::barrier(comm);
}

}  // namespace exchanges
