#include "fakes/envoy/xds/ads_client.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/base/assert.h"
#include "envoy/service/discovery/v3/discovery.pb.h"
#include "google/protobuf/any.pb.h"
#include "google/rpc/status.pb.h"

namespace wavetank::envoysim {
namespace {

constexpr int kInternal = 13;

}  // namespace

AdsClient::AdsClient(Host& host, AdsTransport& transport, Handler& handler, const Options& options, RandomStream random)
    : host_(host),
      transport_(transport),
      handler_(handler),
      options_(options),
      random_(random),
      backoff_(options.backoff_base) {}

AdsClient::~AdsClient() { Stop(); }

void AdsClient::Start() {
  stopped_ = false;
  Open();
}

void AdsClient::Stop() {
  stopped_ = true;
  stream_.reset();
  answered_ = false;
  host_.Cancel(timer_);
  timer_ = kNoTimer;
}

void AdsClient::Open() {
  WAVETANK_ASSERT(!stopped_, serial_);
  WAVETANK_ASSERT(stream_ == nullptr, serial_);  // one at a time
  timer_ = kNoTimer;
  ++serial_;
  node_sent_ = false;
  answered_ = false;
  stream_ = transport_.Open(options_.protocol, this);
  for (TypeState& t : types_) {
    t.nonce.clear();
    t.sent = false;
    t.sent_names.reset();
    t.waiting.clear();  // acknowledgements of an earlier stream mean nothing to this one
  }
  for (int i = 0; i < kXdsTypes; ++i) {
    if (types_[i].subscribed) Send(static_cast<XdsType>(i), nullptr);
  }
}

void AdsClient::OnClose(const absl::Status& status) {
  stream_.reset();
  answered_ = false;
  if (stopped_) return;
  WAVETANK_ASSERT(timer_ == kNoTimer, serial_);  // a stream ends once
  WAVETANK_ASSERT(backoff_ > Duration::zero(), backoff_);
  WAVETANK_ASSERT(backoff_ <= options_.backoff_max, backoff_, options_.backoff_max);
  const Duration gap{static_cast<int64_t>(random_.Below(static_cast<uint64_t>(backoff_.count())))};
  backoff_ = std::min(options_.backoff_max, 2 * backoff_);
  timer_ = host_.RunAfter(gap, [this] { Open(); });
  handler_.OnDisconnected(status);
}

void AdsClient::Subscribe(XdsType type, ResourceNames names, bool again) {
  TypeState& t = types_[Index(type)];
  const bool wildcard = type == XdsType::kCds || type == XdsType::kLds;
  const bool first = !t.subscribed;
  const bool same = t.names == names || (t.names != nullptr && names != nullptr && *t.names == *names);
  if (!wildcard && first && (names == nullptr || names->empty())) return;  // nothing to ask for yet
  t.subscribed = true;
  t.names = std::move(names);
  if (stream_ == nullptr) return;
  // Delta names only differences, so that a changed cluster asks for nothing.
  const bool resend = again && options_.protocol == AdsTransport::Protocol::kSotw;
  if (first || !same || resend) Send(type, nullptr);
}

void AdsClient::Begin(XdsType type, std::string_view nonce, uint32_t stream) {
  if (stream == serial_ && stream_ != nullptr) types_[Index(type)].nonce = nonce;
}

void AdsClient::Hold(XdsType type) { types_[Index(type)].held = true; }

void AdsClient::Release(XdsType type) {
  TypeState& t = types_[Index(type)];
  t.held = false;
  std::vector<Ack> waiting = std::move(t.waiting);
  t.waiting.clear();
  // One request stands for all that was withheld, the last. Envoy: grpc_mux_impl.cc, queueDiscoveryRequest; delta's mux
  // keeps each (new_grpc_mux_impl.cc).
  if (options_.protocol == AdsTransport::Protocol::kSotw && waiting.size() > 1) {
    waiting.erase(waiting.begin(), waiting.end() - 1);
  }
  for (const Ack& ack : waiting) {
    if (stream_ != nullptr) Send(type, &ack);
  }
}

void AdsClient::Accept(XdsType type, std::string_view version, std::string_view nonce) {
  types_[Index(type)].version = version;
  Acknowledge(type, Ack{std::string(version), std::string(nonce), {}});
}

void AdsClient::Reject(XdsType type, std::string_view nonce, std::string_view error) {
  Acknowledge(type, Ack{types_[Index(type)].version, std::string(nonce), std::string(error)});
}

void AdsClient::Acknowledge(XdsType type, Ack ack) {
  TypeState& t = types_[Index(type)];
  if (t.held) {
    t.waiting.push_back(std::move(ack));
  } else if (stream_ != nullptr && t.nonce == ack.nonce) {  // else the stream that asked is gone
    Send(type, &ack);
  }
}

StringMap<std::string>& AdsClient::resource_versions(XdsType type) {
  TypeState& t = types_[Index(type)];
  if (t.versions == nullptr) t.versions = std::make_unique<StringMap<std::string>>();
  return *t.versions;
}

void AdsClient::Send(XdsType type, const Ack* ack) {
  WAVETANK_ASSERT(stream_ != nullptr, type);
  WAVETANK_ASSERT(types_[Index(type)].subscribed, type);  // nothing is acknowledged that was not asked for
  if (options_.protocol == AdsTransport::Protocol::kSotw) {
    SendSotw(type, ack);
  } else {
    SendDelta(type, ack);
  }
}

void AdsClient::SendSotw(XdsType type, const Ack* ack) {
  TypeState& t = types_[Index(type)];
  t.sent = true;
  if ((node_sent_ || stream_->KnowsNode()) && (ack == nullptr || ack->error.empty())) {
    node_sent_ = true;
    stream_->SendPlain(
        {XdsTypeUrl(type), ack != nullptr ? ack->version : t.version, ack != nullptr ? ack->nonce : t.nonce, t.names});
    return;
  }
  DiscoveryRequest request;
  request.set_type_url(std::string(XdsTypeUrl(type)));
  if (!node_sent_) handler_.FillNode(request.mutable_node());  // set_node_on_first_message_only
  node_sent_ = true;
  request.set_version_info(ack != nullptr ? ack->version : t.version);
  request.set_response_nonce(ack != nullptr ? ack->nonce : t.nonce);
  if (t.names != nullptr) {
    request.mutable_resource_names()->Reserve(static_cast<int>(t.names->size()));
    for (const std::string& name : *t.names) request.add_resource_names(name);
  }
  if (ack != nullptr && !ack->error.empty()) {
    request.mutable_error_detail()->set_code(kInternal);
    request.mutable_error_detail()->set_message(ack->error);
  }
  stream_->Send(std::move(request));
}

void AdsClient::SendDelta(XdsType type, const Ack* ack) {
  TypeState& t = types_[Index(type)];
  DeltaDiscoveryRequest request;
  request.set_type_url(std::string(XdsTypeUrl(type)));
  if (!node_sent_) handler_.FillNode(request.mutable_node());
  node_sent_ = true;
  if (ack != nullptr) {
    request.set_response_nonce(ack->nonce);
    if (!ack->error.empty()) {
      request.mutable_error_detail()->set_code(kInternal);
      request.mutable_error_detail()->set_message(ack->error);
    }
  } else {
    if (!t.sent && t.versions != nullptr) {
      for (const auto& [name, version] : *t.versions) (*request.mutable_initial_resource_versions())[name] = version;
    }
    static const std::vector<std::string> kNothing;
    const std::vector<std::string>& now = t.names != nullptr ? *t.names : kNothing;
    const std::vector<std::string>& before = t.sent_names != nullptr ? *t.sent_names : kNothing;
    std::vector<std::string> difference;
    std::set_difference(now.begin(), now.end(), before.begin(), before.end(), std::back_inserter(difference));
    for (std::string& name : difference) request.add_resource_names_subscribe(std::move(name));
    difference.clear();
    std::set_difference(before.begin(), before.end(), now.begin(), now.end(), std::back_inserter(difference));
    for (std::string& name : difference) {
      if (t.versions != nullptr) t.versions->erase(name);
      request.add_resource_names_unsubscribe(std::move(name));
    }
    t.sent_names = t.names;
  }
  t.sent = true;
  stream_->SendDelta(std::move(request));
}

void AdsClient::OnResponse(SotwResponse response) {
  const std::optional<XdsType> type = XdsTypeOf(response.body->type_url);
  if (!type.has_value() || !types_[Index(*type)].subscribed) return;  // Envoy ignores types it never asked for
  backoff_ = options_.backoff_base;
  if (!std::exchange(answered_, true)) handler_.OnConnected();
  handler_.OnResponse(*type, std::move(response));
}

void AdsClient::OnDeltaResponse(std::shared_ptr<const DeltaDiscoveryResponse> response) {
  const std::optional<XdsType> type = XdsTypeOf(response->type_url());
  if (!type.has_value() || !types_[Index(*type)].subscribed) return;
  backoff_ = options_.backoff_base;
  if (!std::exchange(answered_, true)) handler_.OnConnected();
  handler_.OnDeltaResponse(*type, std::move(response));
}

}  // namespace wavetank::envoysim
