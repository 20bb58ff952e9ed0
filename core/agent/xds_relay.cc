#include "core/agent/xds_relay.h"

#include <utility>

#include "core/base/status.h"
#include "fmt/format.h"

namespace wavetank::agent {
namespace {

constexpr std::string_view kRelayScope = "xdsproxy";
constexpr std::string_view kEnvoyTypePrefix = "type.googleapis.com/envoy.";
constexpr int32_t kInternal = 13;  // google.rpc.Code

OwnRequest RequestFor(std::string_view type_url) {
  OwnRequest out;
  out.type_url = type_url;
  return out;
}

// As Go's gRPC prints it.
std::string GoError(const absl::Status& status) {
  static constexpr const char* kCodes[] = {
      "OK",       "Canceled",       "Unknown",          "InvalidArgument",   "DeadlineExceeded",
      "NotFound", "AlreadyExists",  "PermissionDenied", "ResourceExhausted", "FailedPrecondition",
      "Aborted",  "OutOfRange",     "Unimplemented",    "Internal",          "Unavailable",
      "DataLoss", "Unauthenticated"};
  const auto code = static_cast<size_t>(status.code());
  return fmt::format("rpc error: code = {} desc = {}", code < std::size(kCodes) ? kCodes[code] : "Unknown",
                     Message(status));
}

}  // namespace

bool IsExpectedEnd(const absl::Status& status) {
  if (status.ok()) return true;  // the other side has said all it had to say
  if (absl::IsCancelled(status) || absl::IsDeadlineExceeded(status)) return true;
  const std::string_view text = Message(status);
  if (absl::IsUnavailable(status)) {
    for (const std::string_view expected :
         {"client disconnected", "error reading from server: EOF", "transport is closing"}) {
      if (text.find(expected) != std::string_view::npos) return true;
    }
  }
  return text.find("stream terminated by RST_STREAM with error code: NO_ERROR") != std::string_view::npos;
}

std::unique_ptr<XdsRelay::Connection> XdsRelay::Connect(bool overlapping) {
  if (overlapping) Say(log_, Level::kWarn, kRelayScope, "registered overlapping stream; closing previous");
  return std::unique_ptr<Connection>(new Connection(*this));
}

std::vector<OwnRequest> XdsRelay::Connection::AfterDownstream(std::string_view type_url) {
  std::vector<OwnRequest> out;
  if (type_url != kListenerTypeUrl || std::exchange(asked_, true)) return out;
  for (const std::string_view own : {kNameTableTypeUrl, kProxyConfigTypeUrl}) {
    if (relay_.handlers_.contains(own)) out.push_back(RequestFor(own));
  }
  if (relay_.health_) out.push_back(*relay_.health_);
  return out;
}

XdsRelay::Answer XdsRelay::OnUpstream(std::string_view type_url, std::string_view version, std::string_view nonce,
                                      const std::string_view* first) {
  if (const auto handler = handlers_.find(type_url); handler != handlers_.end()) {
    // An answer without resources is not even acknowledged.
    if (first == nullptr) return {Verdict::kKeep, std::nullopt};
    const absl::Status status = handler->second(*first);
    OwnRequest reply = RequestFor(type_url);
    reply.version_info = version;
    reply.response_nonce = nonce;
    if (!status.ok()) reply.error = OwnRequest::Error{kInternal, std::string(Message(status))};
    return {Verdict::kKeep, std::move(reply)};
  }
  if (type_url.starts_with(kDebugTypePrefix)) return {Verdict::kTap, std::nullopt};
  if (!type_url.starts_with(kEnvoyTypePrefix)) {
    Say(log_, Level::kError, kRelayScope,
        fmt::format("Skipping forwarding type url {} to Envoy as is not a valid Envoy type", type_url));
    return {Verdict::kDrop, std::nullopt};
  }
  return {Verdict::kForward, std::nullopt};
}

OwnRequest XdsRelay::SetHealth(bool healthy, std::string_view message) {
  OwnRequest out = RequestFor(kHealthTypeUrl);
  if (!healthy) out.error = OwnRequest::Error{kInternal, std::string(message)};
  health_ = out;
  return out;
}

void XdsRelay::UpstreamEnded(uint64_t connection, const absl::Status& status) const {
  const bool expected = IsExpectedEnd(status);
  Say(log_, expected ? Level::kDebug : Level::kWarn, kRelayScope,
      fmt::format("upstream [{}] terminated with {} {}", connection, expected ? "status" : "unexpected error",
                  status.ok() ? "EOF" : GoError(status)));
}

void XdsRelay::DownstreamEnded(uint64_t connection, const absl::Status& status) const {
  const bool expected = IsExpectedEnd(status);
  Say(log_, expected ? Level::kDebug : Level::kWarn, kRelayScope,
      fmt::format("downstream [{}] terminated with {} {}", connection, expected ? "status" : "unexpected error",
                  status.ok() ? "EOF" : GoError(status)));
}

void XdsRelay::ConnectFailed(std::string_view address, const absl::Status& status) const {
  Say(log_, Level::kError, kRelayScope, fmt::format("failed to connect to upstream {}: {}", address, Message(status)));
}

void XdsRelay::Connected(std::string_view address) const {
  Say(log_, Level::kInfo, kRelayScope, fmt::format("connected to upstream XDS server: {}", address));
}

}  // namespace wavetank::agent
