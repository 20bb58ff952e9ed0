// One request to an API server, and wait for the answer: what the command line needs of a client.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "core/base/time.h"

namespace wavetank::fakekube::http {

struct Outgoing {
  std::string server;  // "http://HOST:PORT"
  std::string method = "GET", path;
  std::string content_type, body;  // of the body, if there is one
  std::string token;               // bearer; empty: none. Never in a message
};
struct Answer {
  int status = 0;
  std::string body;
};
// Unavailable: nobody answers in time; InvalidArgument: no such address, or no such method.
absl::StatusOr<Answer> Send(const Outgoing& call, Duration timeout);

// GET. `server` is "http://HOST:PORT". The body of a 200. Unavailable: nobody answers in time; FailedPrecondition:
// another answer; InvalidArgument: no such address.
absl::StatusOr<std::string> Fetch(const std::string& server, const std::string& path, Duration timeout);

}  // namespace wavetank::fakekube::http
