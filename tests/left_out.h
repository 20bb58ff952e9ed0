// What a test needs and may not find. A test that lacks it is left out, never silently: the census at the end of ./test
// (tools/census) counts it with its reason.
//
// These return from the function they stand in, so they belong into the body of the test itself, where
// tests/CMakeLists.txt looks for them: such a test is an entry of its own in ctest, which shows it as skipped.
#pragma once

#include <gtest/gtest.h>

// What to do for the tests that take manifests of Istio's samples.
inline constexpr char kIstioSamples[] =
    "WAVETANK_ISTIO_SAMPLES names a folder of samples of Istio 1.18.2 (tests/README.md)";

// A tool that ./test installs. ./test --require-all fails without it.
#define NEEDS_TOOL(condition, what, remedy) \
  if (condition) {                          \
  } else                                    \
    GTEST_SKIP() << "left out [tool] " << (what) << ": " << (remedy)

// What the project must not ship and no registry has. An environment variable names it; `name` is what ./test --require
// takes.
#define NEEDS_BROUGHT(condition, name, remedy) \
  if (condition) {                             \
  } else                                       \
    GTEST_SKIP() << "left out [bring] " << (name) << ": " << (remedy)

// What takes minutes: run by ./test --long, and in no second build (tests/long.h).
#define NEEDS_LONG(condition) \
  if (condition) {            \
  } else                      \
    GTEST_SKIP() << "left out [long] takes minutes: ./test --long runs it"
