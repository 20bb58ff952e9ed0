// Clients of HTTP/2, TLS and gRPC, by libcurl; those of plain HTTP/1.1 are http.h's.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "oracles/envoy/case.h"
#include "oracles/envoy/http.h"

namespace wavetank::envoydiff {

class CurlClient {
 public:
  // `secrets` outlive it: what names of `requests.tls` stand for.
  CurlClient(const Requests& requests, const Secrets& secrets);
  ~CurlClient();
  CurlClient(const CurlClient&) = delete;
  CurlClient& operator=(const CurlClient&) = delete;

  // One request; connections are kept as `requests` says.
  HttpAnswer Ask(std::string_view path, const std::vector<std::pair<std::string, std::string>>& headers);

 private:
  class Handle;
  std::unique_ptr<Handle> handle_;
};

}  // namespace wavetank::envoydiff
