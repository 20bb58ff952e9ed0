#include "fakes/envoy/tcp/request_edit.h"

#include <algorithm>
#include <utility>

namespace wavetank::envoysim {

RequestSpec& RequestEdit::Copy() {
  if (copy_ == nullptr) {
    copy_ = std::make_shared<RequestSpec>(*request_);
    copy_->TakeNewId();
    request_ = copy_.get();
  }
  return *copy_;
}

void RequestEdit::Remove(std::string_view name) {
  // What a request cannot do without may be taken from it all the same; it then goes no further.
  if (name == ":path") return Copy().path.clear();
  if (name == ":method") return Copy().method.clear();
  if (name == ":authority") return Copy().authority.clear();
  const auto is = [&](const auto& header) { return header.first == name; };
  if (std::none_of(request_->headers.begin(), request_->headers.end(), is)) return;
  auto& headers = Copy().headers;
  headers.erase(std::remove_if(headers.begin(), headers.end(), is), headers.end());
}

void RequestEdit::Add(std::string_view name, std::string_view value) { Copy().headers.emplace_back(name, value); }

void RequestEdit::Set(std::string_view name, std::string_view value) {
  if (name == ":path") return SetPath(std::string(value));
  if (name == ":method") {
    Copy().method = value;
    return;
  }
  if (name == ":authority" || name == "host") {
    Copy().authority = value;
    return;
  }
  Remove(name);
  Add(name, value);
}

void RequestEdit::Append(std::string_view name, std::string_view value) {
  for (auto& [key, there] : Copy().headers) {
    if (key != name) continue;
    there.append(",").append(value);
    return;
  }
  Add(name, value);
}

void RequestEdit::SetProtocol(HttpProtocol protocol) { Copy().protocol = protocol; }

void RequestEdit::SetTrailers(std::vector<std::pair<std::string, std::string>> trailers) {
  Copy().trailers = std::move(trailers);
}

void RequestEdit::SetPath(std::string path) { Copy().path = std::move(path); }

}  // namespace wavetank::envoysim
