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

}  // namespace sample
