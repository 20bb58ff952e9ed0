#include "sim/traffic.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "core/base/assert.h"
#include "core/base/status.h"
#include "core/kube/types.h"
#include "fmt/format.h"
#include "sim/apps/arrivals.h"

namespace wavetank::sim {
namespace {

// Streams of one request have numbers beyond all users'.
constexpr uint64_t kFirstShortStream = uint64_t{1} << 32;
// A user that is answered within no time still lets time pass.
constexpr Duration kLeastThought = 1us;

// What a client reports whose request found no way out of its pod.
envoysim::RequestRecord Failure(std::string_view details) {
  envoysim::RequestRecord record;
  record.details = details;
  return record;
}

}  // namespace

envoysim::RequestSpec RequestOf(const TrafficSpec& spec) {
  envoysim::RequestSpec out;
  const int usual_port = spec.flight == nullptr ? 80 : 443;  // that clients leave out
  out.authority = spec.port == usual_port ? spec.host : fmt::format("{}:{}", spec.host, spec.port);
  out.path = spec.path;
  out.method = spec.method;
  // A client that says a host itself means it in the name's place, as curl has it; it has one alone.
  for (const auto& header : spec.headers) {
    if (header.first == "host" || header.first == ":authority") {
      out.authority = header.second;
    } else {
      out.headers.push_back(header);
    }
  }
  out.protocol = spec.http;
  if (spec.grpc) {
    const auto say = [&](std::string_view name, std::string value) {
      if (!envoysim::FindHeader(out, name)) out.headers.emplace_back(name, std::move(value));
    };
    say("content-type", "application/grpc");
    say("te", "trailers");
    // gRPC over HTTP/2: at most eight digits, here of milliseconds.
    if (spec.timeout > Duration::zero())
      say("grpc-timeout", fmt::format("{}m", std::min<int64_t>(std::max<int64_t>(spec.timeout / 1ms, 1), 99'999'999)));
  }
  if (spec.body_bytes > 0) out.headers.emplace_back("content-length", std::to_string(spec.body_bytes));
  out.trailers = spec.trailers;
  const bool chunks = !spec.trailers.empty() && spec.body_bytes == 0 && spec.http == envoysim::HttpProtocol::kHttp11;
  if (chunks) out.headers.emplace_back("transfer-encoding", "chunked");
  out.pace = {spec.body_over, spec.body_over / std::max<int64_t>(spec.body_pieces, 1)};
  return out;
}

// The first address of a family that the pod has itself: connect(2) says ENETUNREACH of others at once, and
// getaddrinfo(3) puts those last (RFC 6724, rule 1). Null: none is.
const IpAddress* FirstReachable(const PodProcess& pod, const std::vector<IpAddress>& addresses) {
  const kube::Pod& typed = kube::ParsePod(*pod.pod());
  const auto has = [&](const IpAddress& address) {
    const auto fits = [&](const std::string& ip) { return ip.empty() || (ip.find(':') == ip.npos) == address.is_v4(); };
    return fits(typed.ip) || std::any_of(typed.ips.begin(), typed.ips.end(), fits);
  };
  const auto found = std::find_if(addresses.begin(), addresses.end(), has);
  return found == addresses.end() ? nullptr : &*found;
}

// resolv.conf(5): two queries, and five seconds for each.
constexpr Duration kDnsTimeout = std::chrono::seconds(10);

// Tells the request's end where its host's name does not resolve.
void FailToResolve(PodProcess& pod, const absl::Status& why, Duration timeout, envoysim::AppClient::Done done) {
  const bool dropped = absl::IsDeadlineExceeded(why);
  Duration after = dropped ? kDnsTimeout : Duration::zero();
  if (timeout > Duration::zero()) after = std::min(after, timeout);
  pod.site().commons->host->RunAfter(
      after,
      [done = std::move(done), words = dropped ? std::string(Message(why)) : std::string("no such host")]() mutable {
        done(Failure(words));
      });
}

void SendRequest(PodProcess& pod, const TrafficSpec& spec, const envoysim::RequestSpec& request,
                 const envoysim::AppClient::Options& options, envoysim::AppClient::Done done) {
  const absl::StatusOr<std::vector<IpAddress>> addresses = pod.ResolveName(spec.host);
  if (!addresses.ok()) {
    return FailToResolve(pod, addresses.status(), spec.timeout, std::move(done));
  }
  const IpAddress* const address = FirstReachable(pod, *addresses);
  if (address == nullptr) {
    return pod.site().commons->host->Post([done = std::move(done)]() mutable { done(Failure("network unreachable")); });
  }
  if (spec.flight == nullptr)
    return pod.client().Send({*address, static_cast<uint16_t>(spec.port)}, request, options, std::move(done));
  envoysim::AppClient::Options in_tls = options;
  in_tls.flight = spec.flight;
  pod.client().Send({*address, static_cast<uint16_t>(spec.port)}, request, in_tls, std::move(done));
}

void TellRecord(const Commons& commons, const TrafficSpec& spec, const std::string& client, Time sent,
                int64_t client_attempts, const envoysim::RequestRecord& record,
                const std::function<void(const TrafficRecord&)>& to) {
  std::vector<envoysim::Hop> hops;
  if (record.upstream_connection != envoysim::kNoConnection)
    commons.plane->fabric().DescribeHops(record.upstream_connection, &hops);
  const auto server = commons.servers.find(record.server);
  to({spec, client, sent, commons.host->Now(), record, server == commons.servers.end() ? nullptr : &server->second,
      hops, client_attempts});
}

TrafficSource::TrafficSource(Commons& commons, TrafficSpec spec, const Credential& credential, Clients clients,
                             OnRecord on_record)
    : commons_(commons),
      spec_(std::move(spec)),
      clients_(std::move(clients)),
      on_record_(std::move(on_record)),
      request_(RequestOf(spec_)),
      began_(commons.host->Now()),
      arrivals_(commons.seed, fmt::format("arrivals/{}", spec_.id)) {
  if (!credential.param.empty()) {
    request_.path +=
        (request_.path.find('?') == std::string::npos ? '?' : '&') + credential.param + "=" + credential.token;
  } else if (!credential.header.empty()) {
    request_.headers.emplace_back(credential.header, credential.token);
  } else if (!credential.token.empty()) {
    request_.headers.emplace_back("authorization", "Bearer " + credential.token);
  }
  if (spec_.websocket) {
    handshake_ = request_;
    handshake_.TakeNewId();
    handshake_.headers.emplace_back("connection", "Upgrade");
    handshake_.headers.emplace_back("upgrade", "websocket");
  }
  commons_.host->Post([this, weak = std::weak_ptr<int>(alive_)] {
    if (weak.expired()) return;
    if (spec_.users == 0) return Tick();
    for (int64_t user = 1; user <= spec_.users && !Over(); ++user) SendOne(static_cast<uint64_t>(user));
  });
}

TrafficSource::~TrafficSource() = default;

Duration TrafficSource::Period() const {
  if (spec_.ramp <= Duration::zero()) return spec_.period;
  // In requests per million seconds, so that slow rates count; evenly from the one rate to the other.
  constexpr int64_t kScale = 1'000'000'000'000'000;
  const int64_t first = kScale / std::max<int64_t>(spec_.period.count(), 1),
                last = kScale / std::max<int64_t>(spec_.last_period.count(), 1);
  const int64_t part = std::min<int64_t>((commons_.host->Now() - began_) / 1us, spec_.ramp / 1us);
  const auto rate =
      first + static_cast<int64_t>(static_cast<__int128>(last - first) * part / std::max<int64_t>(spec_.ramp / 1us, 1));
  return Duration(kScale / std::max<int64_t>(rate, 1));
}

Duration TrafficSource::NextWait() {
  const Duration period = Period();
  WAVETANK_ASSERT(period > Duration::zero(), period, spec_.id);  // else all are sent at one instant
  if (!spec_.poisson) return period;
  // A nanosecond at least: requests of one client have an order.
  return std::max(Duration(ExponentialWait(arrivals_, period.count())), Duration(1));
}

void TrafficSource::Tick() {
  if (Over()) return;
  SendOne(0);
  commons_.host->RunAfter(NextWait(), [this, weak = std::weak_ptr<int>(alive_)] {
    if (!weak.expired()) Tick();
  });
}

void TrafficSource::SendOne(uint64_t user) {
  ++sent_;
  ++pending_;
  Try each{"", commons_.host->Now(), 1, user};
  const std::vector<PodProcess*> clients = clients_();
  if (clients.empty()) {
    commons_.host->Post([this, weak = std::weak_ptr<int>(alive_), each = std::move(each)] {
      if (!weak.expired()) Finish(each, Failure("no client pod"));
    });
    return;
  }
  PodProcess* pod = clients[turn_++ % clients.size()];
  // A stream stays where it was opened.
  if (const auto stream = streams_.find(user); user != 0 && stream != streams_.end()) {
    for (PodProcess* other : clients) pod = other->name() == stream->second.client ? other : pod;
  }
  each.client = pod->name();
  Attempt(*pod, std::move(each));
}

void TrafficSource::Attempt(PodProcess& pod, Try each) {
  const bool stays = spec_.keep_alive && each.user != 0;
  const uint64_t number = stays ? each.user : kFirstShortStream + streams_opened_++;
  // A client that dies calls nobody back: what it owed an answer to ends here, and then.
  using Debt = std::unique_ptr<Try, std::function<void(Try*)>>;
  const std::weak_ptr<int> weak = alive_;
  auto done = [this, weak, stays, number, owed = Debt(new Try(std::move(each)), [this, weak](Try* left) {
                                            const std::shared_ptr<Try> unanswered(left);
                                            if (weak.expired()) return;
                                            commons_.host->Post([this, weak, unanswered] {
                                              if (!weak.expired()) Finish(*unanswered, Failure("client pod gone"));
                                            });
                                          })](const envoysim::RequestRecord& record) mutable {
    const std::unique_ptr<Try> answered(owed.release());
    if (weak.expired()) return;
    Ended(*answered, record);
    if (stays || (!spec_.tcp && !spec_.websocket)) return;
    commons_.host->Post([this, weak, number] {
      if (!weak.expired()) streams_.erase(number);
    });
  };
  if (!spec_.tcp && !spec_.websocket) {
    envoysim::AppClient::Options options{spec_.keep_alive, spec_.timeout};
    options.multiplex = spec_.keep_alive && spec_.http == envoysim::HttpProtocol::kHttp2;
    return SendRequest(pod, spec_, request_, options, std::move(done));
  }
  Stream& stream = streams_[number];
  if (stream.session == nullptr || !stream.session->open() || stream.client != pod.name()) {
    const absl::StatusOr<std::vector<IpAddress>> addresses = pod.ResolveName(spec_.host);
    if (!addresses.ok()) return FailToResolve(pod, addresses.status(), spec_.timeout, std::move(done));
    const IpAddress* const address = FirstReachable(pod, *addresses);
    if (address == nullptr) {
      return commons_.host->Post([done = std::move(done)]() mutable { done(Failure("network unreachable")); });
    }
    const SocketAddress to{*address, static_cast<uint16_t>(spec_.port)};
    const auto kind = spec_.websocket ? envoysim::FirstFlight::Kind::kHttp1 : envoysim::FirstFlight::Kind::kOpaque;
    stream = {pod.name(), pod.client().OpenSession(to, kind, spec_.flight)};
    if (spec_.websocket) return ShakeHands(number, std::move(done));
  }
  stream.session->Send(request_, std::move(done));
}

void TrafficSource::ShakeHands(uint64_t number, envoysim::AppClient::Done done) {
  streams_[number].session->Send(handshake_, [this, weak = std::weak_ptr<int>(alive_), number,
                                              done = std::move(done)](const envoysim::RequestRecord& answer) mutable {
    const auto stream = weak.expired() ? streams_.end() : streams_.find(number);
    if (weak.expired() || answer.code != 101 || stream == streams_.end()) {
      done(answer);
      if (weak.expired()) return;
      // What has answered otherwise is no stream; it lives until its record is told.
      return commons_.host->Post([this, weak, number] {
        if (!weak.expired()) streams_.erase(number);
      });
    }
    stream->second.session->Send(
        request_, [shaken = answer.latency, done = std::move(done)](const envoysim::RequestRecord& message) mutable {
          envoysim::RequestRecord whole = message;
          whole.latency += shaken;
          done(whole);
        });
  });
}

void TrafficSource::Ended(Try each, const envoysim::RequestRecord& record) {
  if (!stopped_ && spec_.retry.Again(each.attempt, record)) {
    commons_.host->RunAfter(spec_.retry.Wait(each.attempt), [this, weak = std::weak_ptr<int>(alive_), each]() mutable {
      if (weak.expired()) return;
      ++each.attempt;
      for (PodProcess* client : clients_()) {
        if (client->name() == each.client) return Attempt(*client, std::move(each));
      }
      Finish(each, Failure("no client pod"));  // it is gone meanwhile
    });
    return;
  }
  Finish(each, record);
}

void TrafficSource::Finish(const Try& each, const envoysim::RequestRecord& record) {
  WAVETANK_ASSERT(pending_ > 0, pending_, spec_.id);  // each request ends once
  WAVETANK_ASSERT(pending_ <= sent_, pending_, sent_, spec_.id);
  --pending_;
  if (on_record_) TellRecord(commons_, spec_, each.client, each.sent, each.attempt, record, on_record_);
  if (each.user == 0 || Over()) return;
  commons_.host->RunAfter(std::max(spec_.think, kLeastThought),
                          [this, weak = std::weak_ptr<int>(alive_), user = each.user] {
                            if (!weak.expired() && !Over()) SendOne(user);
                          });
}

}  // namespace wavetank::sim
