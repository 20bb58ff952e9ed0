// The part of curl's command line that people use in a pod, and what curl prints of an answer.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/time.h"

namespace wavetank::serve {

struct CurlCall {
  std::string host, path = "/", method = "GET";
  int port = 80;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string connect_to;                      // --resolve: the address of `host`; empty: what its name says
  bool tls = false, insecure = false, verbose = false;
  int64_t body_bytes = 0;  // -d
  bool silent = false, show_errors = false, include_head = false, only_head = false, fail = false;
  bool dump_head = false;   // -D -: the head on standard output, whatever becomes of the body
  bool to_nowhere = false;  // -o FILE: nothing on standard output
  std::string write_out;    // -w
  std::string protocol;     // as a flow's: "http1.0", "http2"; empty: HTTP/1.1
  Duration max_time{};      // -m; 0: none
};

// argv[0] is "curl". InvalidArgument: in curl's words, what it would refuse, or what a simulated pod cannot do.
absl::StatusOr<CurlCall> ReadCurl(const std::vector<std::string>& argv);

struct CurlAnswer {
  int code = 0;  // 0: no answer
  std::string body;
  std::string_view why;      // without an answer: "no such host", or the reason
  std::string_view closer;   // what went wrong in the handshake
  std::string_view headers;  // lines "name: value"
  double seconds = 0;
};
struct CommandResult {
  std::string out, err;
  int exit_code = 0;
  std::string failure;  // the command could not be run at all: the runtime's words
};
CommandResult CurlResult(const CurlCall& call, const CurlAnswer& answer);

}  // namespace wavetank::serve
