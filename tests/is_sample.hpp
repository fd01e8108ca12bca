// SPDX-License-Identifier: Apache-2.0
// Whether tests take less than everything: under a sanitizer, and where COLLX_TEST_SAMPLE is defined.
#pragma once

// What is run for the thread sanitizer's sake asks for it, and is whole there.
#if defined(__SANITIZE_THREAD__)
#define COLLX_TEST_THREAD_SANITIZER
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define COLLX_TEST_THREAD_SANITIZER
#endif
#endif

#if defined(COLLX_TEST_SAMPLE)
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COLLX_TEST_SAMPLE
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define COLLX_TEST_SAMPLE
#endif
#endif

namespace sample {

#if defined(COLLX_TEST_SAMPLE)
inline constexpr bool is_sample = true;
#else
inline constexpr bool is_sample = false;
#endif

// Of a walk over numbers of ranks: all, or the small ones, powers of two and the last of each test.
[[nodiscard]] constexpr bool takes(int size) {
  return !is_sample || size <= 9 || size == 16 || size == 33 || size == 64 || size == 65;
}

// The same where ranks are threads or processes, and many take long: one, two, odd, and powers of two.
[[nodiscard]] constexpr bool takes_running(int size) {
  return !is_sample || size <= 3 || size == 5 || size == 8;
}

}  // namespace sample
