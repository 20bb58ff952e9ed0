#include "sim/traffic.h"

#include <utility>

#include "fmt/format.h"

namespace wavetank::sim {
namespace {

// What a client reports whose request found no way out of its pod.
envoysim::RequestRecord Failure(std::string_view details) {
  envoysim::RequestRecord record;
  record.details = details;
  return record;
}

}  // namespace

TrafficSource::TrafficSource(Commons& commons, TrafficSpec spec, const Credential& credential, Clients clients,
                             OnRecord on_record)
    : commons_(commons), spec_(std::move(spec)), clients_(std::move(clients)), on_record_(std::move(on_record)) {
  request_.authority = spec_.port == 80 ? spec_.host : fmt::format("{}:{}", spec_.host, spec_.port);
  request_.path = spec_.path;
  request_.method = spec_.method;
  request_.headers = spec_.headers;
  if (!credential.param.empty()) {
    request_.path +=
        (request_.path.find('?') == std::string::npos ? '?' : '&') + credential.param + "=" + credential.token;
  } else if (!credential.header.empty()) {
    request_.headers.emplace_back(credential.header, credential.token);
  } else if (!credential.token.empty()) {
    request_.headers.emplace_back("authorization", "Bearer " + credential.token);
  }
  commons_.host->Post([this, weak = std::weak_ptr<int>(alive_)] {
    if (!weak.expired()) Tick();
  });
}

TrafficSource::~TrafficSource() = default;

void TrafficSource::Tick() {
  if (stopped_ || (spec_.requests > 0 && sent_ >= spec_.requests)) return;
  SendOne();
  commons_.host->RunAfter(spec_.period, [this, weak = std::weak_ptr<int>(alive_)] {
    if (!weak.expired()) Tick();
  });
}

void TrafficSource::SendOne() {
  ++sent_;
  ++pending_;
  const Time now = commons_.host->Now();
  const std::vector<PodProcess*> clients = clients_();
  const auto fail_later = [&](std::string client, std::string_view why) {
    commons_.host->Post([this, weak = std::weak_ptr<int>(alive_), client = std::move(client), now, why] {
      if (!weak.expired()) Finish(client, now, Failure(why));
    });
  };
  if (clients.empty()) return fail_later("", "no client pod");
  PodProcess& pod = *clients[turn_++ % clients.size()];
  const absl::StatusOr<std::vector<IpAddress>> addresses = pod.site().dns->Resolve(spec_.host, pod.pod()->meta.ns);
  if (!addresses.ok()) return fail_later(pod.name(), "no such host");
  const SocketAddress destination{addresses->front(), static_cast<uint16_t>(spec_.port)};
  auto done = [this, weak = std::weak_ptr<int>(alive_), client = pod.name(), now,
               number = turn_](const envoysim::RequestRecord& record) {
    if (weak.expired()) return;
    Finish(client, now, record);
    if (spec_.tcp) {
      commons_.host->Post([this, weak, number] {
        if (!weak.expired()) sessions_.erase(number);
      });
    }
  };
  if (spec_.tcp) {
    auto& session = sessions_[turn_];
    session = pod.client().OpenSession(destination, envoysim::FirstFlight::Kind::kOpaque);
    session->Send(request_, std::move(done));
  } else {
    pod.client().Send(destination, request_, {spec_.keep_alive, Duration::zero()}, std::move(done));
  }
}

void TrafficSource::Finish(const std::string& client, Time sent, const envoysim::RequestRecord& record) {
  --pending_;
  if (!on_record_) return;
  hops_.clear();
  if (record.upstream_connection != envoysim::kNoConnection) {
    commons_.plane->fabric().DescribeHops(record.upstream_connection, &hops_);
  }
  const auto server = commons_.servers.find(record.server);
  on_record_({spec_, client, sent, commons_.host->Now(), record,
              server == commons_.servers.end() ? nullptr : &server->second, hops_});
}

}  // namespace wavetank::sim
