// What a connection manager makes of answers of the proxy's own: another status, body, type and headers
// (local_reply_config). Envoy: source/common/local_reply/local_reply.cc
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "fakes/envoy/access_log/access_log.h"
#include "fakes/envoy/http/header_operations.h"

namespace envoy::extensions::filters::network::http_connection_manager::v3 {
class LocalReplyConfig;
}

namespace wavetank::envoysim {

class LocalReplyRules {
 public:
  // InvalidArgument with Envoy's words.
  static absl::StatusOr<LocalReplyRules> Make(
      const envoy::extensions::filters::network::http_connection_manager::v3::LocalReplyConfig& config,
      const Extensions& extensions);

  struct Rewritten {
    uint16_t code = 0;
    std::string body, content_type;
  };
  // The first mapper that takes the answer counts. `entry`: of the request, with the answer's code and details.
  // `lines`: Reply::headers, which it may change.
  Rewritten Rewrite(AccessLogEntry entry, std::string_view body, std::string* lines) const;

 private:
  struct BodyFormat {
    AccessLogFormat format;
    std::string content_type;
  };
  struct Mapper {
    AccessLogFilter filter;
    std::optional<uint16_t> code;
    std::optional<std::string> body;
    std::optional<BodyFormat> format;
    HeaderOperations headers;
  };
  template <typename Message>
  static absl::StatusOr<BodyFormat> MakeFormat(const Message& message, const Extensions& extensions);

  std::vector<Mapper> mappers_;
  std::optional<BodyFormat> format_;  // nothing: the body as it is, as text/plain
};

}  // namespace wavetank::envoysim
