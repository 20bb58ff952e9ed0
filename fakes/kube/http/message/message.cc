#include "fakes/kube/http/message/message.h"

#include <utility>

#include "core/base/text/percent.h"
#include "fakes/kube/http/message/line_stream.h"

namespace wavetank::fakekube::http {
absl::StatusOr<std::string> PercentDecode(std::string_view text, bool plus) {
  std::optional<std::string> out = PercentDecoded(text, plus);
  if (!out.has_value() || text.find("%00") != text.npos)
    return absl::InvalidArgumentError("invalid URL escape in the request's address");
  return *std::move(out);
}

absl::StatusOr<Query> Query::Parse(std::string_view text) {
  Query query;
  while (!text.empty()) {
    const size_t end = text.find('&');
    const std::string_view part = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (part.empty()) continue;
    const size_t equals = part.find('=');
    absl::StatusOr<std::string> name = PercentDecode(part.substr(0, equals), true);
    absl::StatusOr<std::string> value =
        equals == std::string_view::npos ? std::string() : PercentDecode(part.substr(equals + 1), true);
    if (!name.ok()) return name.status();
    if (!value.ok()) return value.status();
    query.values_.emplace(*std::move(name), *std::move(value));
  }
  return query;
}

const std::string& Query::Get(std::string_view name) const {
  static const std::string* const kNone = new std::string();
  const auto it = values_.find(name);
  return it == values_.end() ? *kNone : it->second;
}

bool Query::Flag(std::string_view name) const {
  const std::string& value = Get(name);
  return value == "true" || value == "1";
}

Response::Response() = default;
Response::~Response() = default;
Response::Response(Response&&) noexcept = default;
Response& Response::operator=(Response&&) noexcept = default;

std::string Response::Text() {
  std::string text = body;
  if (produce) {
    while (produce(&text)) {
    }
  }
  return text;
}

void LaterResponse::Then(absl::AnyInvocable<void(Response)> fn) {
  if (response_) return fn(*std::move(response_));
  fn_ = std::move(fn);
}

void LaterResponse::Set(Response response) {
  if (fn_ != nullptr) return std::exchange(fn_, nullptr)(std::move(response));
  response_ = std::move(response);
}

}  // namespace wavetank::fakekube::http
