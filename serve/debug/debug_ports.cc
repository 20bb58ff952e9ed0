#include "serve/debug/debug_ports.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "core/debug/pages.h"
#include "fmt/format.h"
#include "sim/istiod_process.h"

namespace wavetank::serve {

namespace http = fakekube::http;

http::Response DebugAnswer(const sim::World& world, const std::string& cluster, const http::Request& request,
                           const MetricsPage& metrics) {
  http::Response out;
  out.content_type = "text/plain; charset=utf-8";
  if (request.method != "GET" && request.method != "HEAD") {
    out.code = 405;
    out.body = "Method Not Allowed\n";
    return out;
  }
  const sim::IstiodProcess* const process = world.IstiodOf(cluster);
  if (process == nullptr) {
    out.code = 503;
    out.body = fmt::format("no istiod runs in {}\n", cluster);
    return out;
  }
  if (metrics && request.path == "/metrics") {
    out.content_type = "text/plain; version=0.0.4; charset=utf-8";
    out.body = metrics(cluster);
    return out;
  }
  const std::string target = request.query.empty() ? request.path : request.path + "?" + request.query;
  debug::Reply reply = debug::Page(process->istiod(), target);
  out.code = reply.status;
  if (!reply.content_type.empty()) out.content_type = std::move(reply.content_type);
  out.body = std::move(reply.body);
  if (!reply.location.empty()) out.headers.emplace_back("Location", std::move(reply.location));
  return out;
}

absl::StatusOr<std::unique_ptr<DebugPorts>> DebugPorts::Start(Loop& loop, const std::vector<std::string>& primaries,
                                                              const std::string& listen, MetricsPage metrics) {
  const size_t colon = listen.rfind(':');
  int32_t port = 0;
  if (colon == std::string::npos || !absl::SimpleAtoi(listen.substr(colon + 1), &port) || port < 0 ||
      port + 100 * static_cast<int64_t>(primaries.size()) > 65636) {
    return absl::InvalidArgumentError(fmt::format("'{}' is no address to listen at; write 127.0.0.1:15014", listen));
  }
  const std::string host = listen.substr(0, colon) == "localhost" ? "127.0.0.1" : listen.substr(0, colon);
  std::unique_ptr<DebugPorts> ports(new DebugPorts);
  // Clients take no turns: a page is made as soon as the world has time for it.
  ports->server_ =
      std::make_unique<http::Server>(http::ServerOptions{}, [&loop](uint64_t, absl::AnyInvocable<void()> task) {
        loop.Post([task = std::move(task)](sim::World&) mutable { task(); });
      });
  for (size_t i = 0; i < primaries.size(); ++i) {
    const auto wanted = static_cast<uint16_t>(port == 0 ? 0 : port + 100 * static_cast<int32_t>(i));
    const absl::StatusOr<uint16_t> got =
        ports->server_->Listen(host, wanted, [&loop, cluster = primaries[i], metrics](const http::Request& request) {
          return DebugAnswer(loop.world(), cluster, request, metrics);
        });
    if (!got.ok()) return got.status();
    ports->where_.push_back({primaries[i], fmt::format("{}:{}", host, *got)});
  }
  ports->server_->Start();
  return ports;
}

DebugPorts::~DebugPorts() { Stop(); }

void DebugPorts::Stop() {
  if (server_ != nullptr) server_->Stop();
}

}  // namespace wavetank::serve
