// Headers that routes, virtual hosts and route tables add, set and remove, in requests and answers.
// Envoy: source/common/router/header_parser.cc
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fakes/envoy/access_log/access_log_format.h"

namespace envoy::config::core::v3 {
class HeaderValueOption;
}

namespace wavetank::envoysim {

class Extensions;
class RequestEdit;

// One header that is added or set: a HeaderValueOption.
struct HeaderAddition {
  // HeaderValueOption.HeaderAppendAction
  enum class Action : uint8_t { kAppend, kAddIfAbsent, kOverwriteOrAdd, kOverwriteIfExists };

  std::string name;  // lower case
  Action action = Action::kAppend;
  bool keep_empty = false;
  std::shared_ptr<const AccessLogFormat> format;  // nullptr: `text` as it is
  std::string text;

  // InvalidArgument with Envoy's words.
  static absl::StatusOr<HeaderAddition> Make(const envoy::config::core::v3::HeaderValueOption& option,
                                             const Extensions& extensions);
  // Nothing: there is no value, and so no header.
  std::optional<std::string> ValueFor(const AccessLogEntry& entry) const;
};

// Headers as operations change them, those of a request and the lines of an answer.
struct RequestHeaders {
  RequestEdit* edit;
  bool Has(const std::string& name) const;
  void Set(const std::string& name, const std::string& value) const;
  void Add(const std::string& name, const std::string& value) const;  // pseudo headers cannot be appended to
  void Remove(const std::string& name) const;
};
struct ReplyLines {
  std::string* lines;  // Reply::headers
  bool Has(const std::string& name) const;
  void Set(const std::string& name, const std::string& value) const;
  void Add(const std::string& name, const std::string& value) const;
  void Remove(const std::string& name) const;
};

class HeaderOperations {
 public:
  // Of each level's message: the fields {request,response}_headers_to_{add,remove}. InvalidArgument with Envoy's words.
  template <typename Message>
  static absl::Status MakeForRequests(const Message& message, const Extensions& extensions, HeaderOperations* out) {
    return Make(message.request_headers_to_add(), message.request_headers_to_remove(), extensions, out);
  }
  template <typename Message>
  static absl::Status MakeForReplies(const Message& message, const Extensions& extensions, HeaderOperations* out) {
    return Make(message.response_headers_to_add(), message.response_headers_to_remove(), extensions, out);
  }

  // Of a list of HeaderValueOption alone.
  template <typename Additions>
  static absl::Status MakeAdditions(const Additions& additions, const Extensions& extensions, HeaderOperations* out) {
    for (const auto& addition : additions) {
      if (absl::Status s = out->Add(addition, extensions); !s.ok()) return s;
    }
    return absl::OkStatus();
  }

  bool empty() const { return added_.empty() && removed_.empty(); }
  // What formats print comes from `entry`, but for the headers that are changed.
  void Apply(const AccessLogEntry& entry, RequestEdit* request) const;
  // `lines`: Reply::headers.
  void Apply(const AccessLogEntry& entry, std::string* lines) const;

 private:
  template <typename Additions, typename Names>
  static absl::Status Make(const Additions& additions, const Names& removals, const Extensions& extensions,
                           HeaderOperations* out) {
    for (const auto& addition : additions) {
      if (absl::Status s = out->Add(addition, extensions); !s.ok()) return s;
    }
    for (const std::string& name : removals) {
      if (absl::Status s = out->Remove(name); !s.ok()) return s;
    }
    return absl::OkStatus();
  }
  absl::Status Add(const envoy::config::core::v3::HeaderValueOption& option, const Extensions& extensions);
  absl::Status Remove(const std::string& name);
  // `Headers`: has Has(), Set(), Add() and Remove() of names.
  template <typename Headers>
  void AddTo(const AccessLogEntry& entry, Headers* headers) const;

  std::vector<HeaderAddition> added_;
  std::vector<std::string> removed_;
};

}  // namespace wavetank::envoysim
