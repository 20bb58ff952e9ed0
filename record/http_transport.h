// Transport by libcurl: one thread, all clusters' requests in one multi handle.
//
// TLS as the kubeconfig says: its CA or the system's, its server name, its client certificate or token. Plaintext HTTP
// is for loopback only, since it shows the token to every machine on the way. Redirects are not followed: a token goes
// to the server that it was given for and to no other.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "core/base/time.h"
#include "core/kube/credentials/kubeconfig.h"
#include "record/transport.h"

namespace wavetank::record {

class HttpLoop {
 public:
  HttpLoop();
  ~HttpLoop();  // after all its transports and calls
  HttpLoop(const HttpLoop&) = delete;
  HttpLoop& operator=(const HttpLoop&) = delete;

  // For one API server; the loop must outlive it. InvalidArgument: http:// to somewhere else than loopback.
  absl::StatusOr<std::unique_ptr<Transport>> Connect(const kube::KubeConfig& config);

  // Sleeps until something comes or `longest` of real time is over; a signal ends the sleep too.
  void Wait(Duration longest);
  // Calls the callbacks of what has come.
  void Deliver();

  class Impl;  // for http_transport.cc

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace wavetank::record
