// A request as filters change it: the one that came, until the first change makes a copy.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fakes/envoy/tcp/http.h"

namespace wavetank::envoysim {

class RequestEdit {
 public:
  // `request` has to live as long as this.
  explicit RequestEdit(const RequestSpec& request) : request_(&request) {}

  const RequestSpec& now() const { return *request_; }
  // Names in lower case.
  void Remove(std::string_view name);
  void Add(std::string_view name, std::string_view value);
  void Set(std::string_view name, std::string_view value);
  // To what is there, after a comma; added if nothing is.
  void Append(std::string_view name, std::string_view value);
  void SetPath(std::string path);
  void SetProtocol(HttpProtocol protocol);
  void SetTrailers(std::vector<std::pair<std::string, std::string>> trailers);
  // Null if nothing changed.
  std::shared_ptr<const RequestSpec> Take() { return std::move(copy_); }

 private:
  RequestSpec& Copy();

  const RequestSpec* request_;
  std::shared_ptr<RequestSpec> copy_;
};

}  // namespace wavetank::envoysim
