// One GET of a small document, and wait for it.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "core/base/time.h"

namespace wavetank::fakekube::http {

// `server` is "http://HOST:PORT". The body of a 200. Unavailable: nobody answers in time; FailedPrecondition: another
// answer; InvalidArgument: no such address.
absl::StatusOr<std::string> Fetch(const std::string& server, const std::string& path, Duration timeout);

}  // namespace wavetank::fakekube::http
