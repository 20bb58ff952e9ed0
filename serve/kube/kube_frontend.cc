#include "serve/kube/kube_frontend.h"

#include <chrono>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "core/base/json_text.h"
#include "fakes/kube/http/message/line_stream.h"
#include "fakes/kube/http/message/status.h"
#include "fakes/kube/http/rest/rest.h"
#include "fakes/kube/store/event_store.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "serve/kube/kube_tls.h"
#include "sim/inputs/kinds/kube_request.h"

namespace wavetank::serve {
namespace {

namespace http = fakekube::http;
using nlohmann::json;

http::Response OrUnwritten(http::Response response, const absl::Status& logged) {
  if (logged.ok()) return response;
  return http::Failure(500, "InternalError", "the event log of this run cannot be written; nothing is acknowledged");
}

// The same answer, once what it tells of is durable.
http::Response WhenDurable(Loop& loop, http::Response response) {
  if (response.watch != nullptr) return response;  // a watch acknowledges nothing that its client did
  auto later = std::make_shared<http::LaterResponse>();
  const auto hold = [&loop, later](http::Response decided) {
    loop.WhenDurable([later, decided = std::move(decided)](const absl::Status& logged) mutable {
      later->Set(OrUnwritten(std::move(decided), logged));
    });
  };
  if (response.later != nullptr) {
    response.later->Then(hold);
  } else {
    hold(std::move(response));
  }
  http::Response out;
  if (later->ready()) {
    later->Then([&out](http::Response ready) { out = std::move(ready); });
  } else {
    out.later = std::move(later);
  }
  return out;
}

}  // namespace

http::Server::Executor RunOn(Loop& loop) {
  return [&loop](uint64_t connection, absl::AnyInvocable<void()> task) {
    auto run = [task = std::move(task)](sim::World&) mutable { task(); };
    if (connection == 0) {
      loop.Post(std::move(run));
    } else {
      loop.PostFor(fmt::format("kube#{}", connection), std::move(run));
    }
  };
}

absl::StatusOr<std::unique_ptr<KubeFrontend>> KubeFrontend::Start(Loop& loop, const std::vector<std::string>& clusters,
                                                                  const KubeOptions& options) {
  const size_t colon = options.listen.rfind(':');
  int32_t port = 0;
  if (colon == std::string::npos || !absl::SimpleAtoi(options.listen.substr(colon + 1), &port) || port < 0 ||
      port + clusters.size() > 65536) {
    return absl::InvalidArgumentError(
        fmt::format("'{}' is no address to listen at; write 127.0.0.1:8901", options.listen));
  }
  const std::string host = options.listen.substr(0, colon);
  // As a socket is bound: brackets belong to URLs.
  const std::string ip = host.size() > 2 && host.front() == '[' ? host.substr(1, host.size() - 2)
                         : host == "localhost"                  ? "127.0.0.1"
                                                                : host;
  if (!options.token.empty()) {
    loop.Call([&](sim::World& world) {
      for (const std::string& cluster : clusters) world.KubeApi(cluster)->DemandToken(options.token);
      return true;
    });
  }
  // Somebody may look at Events from here on.
  loop.Call([&](sim::World& world) {
    for (const std::string& cluster : clusters) world.KubeApi(cluster)->server().events()->Listen();
    return true;
  });
  std::unique_ptr<KubeFrontend> frontend(new KubeFrontend);
  frontend->server_ = std::make_unique<http::Server>(options.limits, RunOn(loop));
  if (options.tls) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    absl::StatusOr<KubeTls> tls = MakeKubeTls({ip}, now / std::chrono::seconds(1));
    if (!tls.ok()) return tls.status();
    // Over TLS kubectl asks its user for a name and a password where its kubeconfig names nobody.
    if (options.client_certificates || options.token.empty()) frontend->admin_ = std::move(tls->admin);
    if (options.client_certificates) {
      loop.Call([&](sim::World& world) {
        for (const std::string& cluster : clusters) world.KubeApi(cluster)->DemandCredentials();
        return true;
      });
    }
    tls->identity.client_ca_pem += options.client_ca_pem;
    if (absl::Status status = frontend->server_->UseTls(tls->identity); !status.ok()) return status;
    frontend->ca_pem_ = tls->ca_pem;
  }
  auto listing = std::make_shared<json>(json::array());
  for (size_t i = 0; i < clusters.size(); ++i) {
    const uint16_t wanted = static_cast<uint16_t>(port == 0 ? 0 : port + static_cast<int32_t>(i));
    absl::StatusOr<uint16_t> got = frontend->server_->Listen(
        ip, wanted, [&loop, cluster = clusters[i], listing, before = options.before](const http::Request& request) {
          if (request.path == kClustersPath && request.method == "GET") return http::JsonResponse(200, *listing);
          if (before) {
            if (std::optional<http::Response> answer = before(loop.world(), cluster, request))
              return *std::move(answer);
          }
          return WhenDurable(loop, sim::AskKube(loop.world(), cluster, request));
        });
    if (!got.ok()) return got.status();
    frontend->where_.push_back({clusters[i], fmt::format("{}://{}:{}", options.tls ? "https" : "http", host, *got)});
    listing->push_back({{"cluster", clusters[i]}, {"server", frontend->where_.back().server}});
  }
  frontend->server_->Start();
  return frontend;
}

KubeFrontend::~KubeFrontend() { Stop(); }

void KubeFrontend::Stop() {
  if (server_ != nullptr) server_->Stop();
}

std::string RenderKubeconfig(const std::vector<KubeListener>& clusters, const std::string& token,
                             const std::string& ca_pem, const http::TlsIdentity* user) {
  // JSON is YAML; written so that people read it.
  const auto quoted = [](const std::string& text) { return JsonText(json(text)); };
  std::string out = "apiVersion: v1\nkind: Config\n";
  if (!clusters.empty()) out += fmt::format("current-context: {}\n", quoted(clusters.front().cluster));
  out += "clusters:\n";
  std::string ca;
  if (!ca_pem.empty()) ca = fmt::format(", certificate-authority-data: {}", absl::Base64Escape(ca_pem));
  for (const KubeListener& c : clusters)
    out += fmt::format("- name: {}\n  cluster: {{server: {}{}}}\n", quoted(c.cluster), quoted(c.server), ca);
  out += "contexts:\n";
  for (const KubeListener& c : clusters)
    out += fmt::format("- name: {0}\n  context: {{cluster: {0}, user: wavetank}}\n", quoted(c.cluster));
  std::string credentials = token.empty() ? "" : "token: " + quoted(token);
  if (user != nullptr) {
    credentials += fmt::format("{}client-certificate-data: {}, client-key-data: {}", credentials.empty() ? "" : ", ",
                               absl::Base64Escape(user->certificates_pem), absl::Base64Escape(user->key_pem));
  }
  return out + fmt::format("users:\n- name: wavetank\n  user: {{{}}}\n", credentials);
}

}  // namespace wavetank::serve
