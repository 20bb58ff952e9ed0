// What a cluster's API server asks of istiod's webhooks: injection of new pods, validation of what is written.
#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "core/base/assert.h"
#include "core/base/json/json_read.h"
#include "core/base/status.h"
#include "core/inject/injection_webhook.h"
#include "core/inject/webhook_configuration.h"
#include "core/model/labels.h"
#include "fakes/kube/http/rest/rest.h"
#include "fmt/format.h"
#include "sim/istiod_run.h"
#include "sim/mending/installation.h"
#include "sim/network/go_words.h"
#include "sim/webhooks/istio_webhook.h"
#include "sim/world_site.h"

namespace wavetank::sim {

using nlohmann::json;

namespace {

std::string CaBundle(const kube::Object& configuration, const std::string& webhook) {
  for (const json& candidate : Items(At(configuration.body, "webhooks"))) {
    if (Text(candidate, "name") != webhook) continue;
    std::string pem;
    if (absl::Base64Unescape(Text(At(candidate, "clientConfig"), "caBundle"), &pem)) return pem;
  }
  return {};
}

}  // namespace

// A pod on its way through the webhooks that select it.
struct World::Site::AdmissionRound {
  std::vector<kube::ObjectRef> configurations;
  size_t configuration = 0, webhook = 0;  // the next one
  kube::Labels namespace_labels;
  absl::AnyInvocable<void(absl::StatusOr<json>)> done;
};

fakekube::http::WebhookVerdict World::Site::AskIstio(const nlohmann::json& object) const {
  // What a recording shows was taken already; what a world begins with is its state, as a dump of a mesh is, of which
  // no istiod can have been asked.
  if (config_.observed || world_.Now() <= world_.options_.start) return {};
  const IstiodProcess* const process = world_.IstiodOf(config_.name);
  return JudgeByIstio(
      cluster_->api(), object, [this](const json& webhook) { return ReachIstio(webhook); },
      process != nullptr && process->istiod().Ready(),
      process != nullptr ? process->istiod().profile() : world_.profile());
}

// As kube-apiserver dials a webhook (apiserver: pkg/util/webhook, pkg/util/proxy/proxy.go), but at once: its answers
// are those of a moment.
absl::Status World::Site::ReachIstio(const json& webhook) const {
  const json& config = At(webhook, "clientConfig");
  const json& service = At(config, "service");
  const kube::NamespacedName name{Text(service, "namespace"), Text(service, "name")};
  std::string host = fmt::format("{}.{}.svc", name.name, name.ns), url = Text(config, "url");
  if (url.empty()) {
    url = fmt::format("https://{}:{}{}?timeout={}s", host, Number(service, "port", 443), Text(service, "path"),
                      Number(webhook, "timeoutSeconds", 10));
  } else {
    host = url.substr(std::min(url.size(), url.find("://") + 3));
    host = host.substr(0, host.find_first_of(":/?"));
  }
  const auto refuse = [&](std::string_view why) {
    return absl::UnavailableError(fmt::format("Post \"{}\": {}", url, why));
  };
  const IstiodProcess* process = world_.IstiodOf(config_.name);
  if (!name.name.empty()) {
    if (cluster_->api().Get("Service", name) == nullptr)
      return refuse(fmt::format("service \"{}\" not found", name.name));
    bool endpoint = false;
    for (const kube::ObjectRef& slice : cluster_->api().List("EndpointSlice", name.ns)) {
      const auto of = slice->meta.labels.find(pilot::kServiceNameLabel);
      if (of == slice->meta.labels.end() || of->second != name.name) continue;
      for (const json& each : Items(At(slice->body, "endpoints"))) {
        if (At(each, {"conditions", "ready"}) == false) continue;
        endpoint = true;
        const auto run = istiods_.find({name.ns, Text(At(each, "targetRef"), "name")});
        if (run != istiods_.end()) process = run->second->process.get();
      }
    }
    if (const kube::ObjectRef written = cluster_->api().Get("Endpoints", name); written != nullptr && !endpoint) {
      for (const json& subset : Items(At(written->body, "subsets")))
        endpoint = endpoint || !Items(At(subset, "addresses")).empty();
    }
    if (!endpoint) return refuse(fmt::format("no endpoints available for service \"{}\"", name.name));
  }
  const security::ServingCertificate* const serving =
      process == nullptr || !process->istiod().Ready() ? nullptr : process->istiod().serving_certificate();
  if (serving == nullptr || serving->chain.empty()) return refuse("connect: connection refused");
  // Without a bundle the system's roots count, which know no mesh's.
  std::string pem;
  absl::Base64Unescape(Text(config, "caBundle"), &pem);
  const Time now = world_.host_->Now();
  bool trusted = false;
  if (!pem.empty()) {
    const absl::StatusOr<x509::TrustBundleRef> roots = place_.commons->certificates->ParseBundle(pem, "caBundle");
    if (!roots.ok())
      return absl::UnavailableError("unable to load root certificates: unable to parse bytes as PEM block");
    trusted = x509::Verify(serving->chain, **roots, now, x509::Purpose::kServerAuth).ok();
  }
  const std::vector<std::string>& names = serving->chain.front()->sans().dns_names;
  if (trusted && std::find(names.begin(), names.end(), host) != names.end()) return absl::OkStatus();
  envoysim::TlsServer shown;
  shown.certificate = envoysim::CertificateChain::Of(serving->chain);
  return refuse(GoTlsRefusal(shown, host, false, now));
}

void World::Site::Review(json pod, const kube::Labels& namespace_labels,
                         absl::AnyInvocable<void(absl::StatusOr<json>)> done) {
  // Templates of a record's workloads are its pods, which have passed their webhooks (fakes/kube/workloads/inferred.h).
  if (config_.observed && pilot::HasProxy(pod)) return done(std::move(pod));
  kube::Labels ns_labels = namespace_labels;
  ns_labels.emplace("kubernetes.io/metadata.name", Text(At(pod, "metadata"), "namespace"));
  auto round = std::make_shared<AdmissionRound>();
  round->configurations = cluster_->api().List("MutatingWebhookConfiguration");
  round->namespace_labels = std::move(ns_labels);
  round->done = std::move(done);
  AskWebhooks(std::move(round), std::move(pod));
}

// apiserver: pkg/admission/plugin/webhook/mutating/dispatcher.go, and configuration/mutating_webhook_manager.go: every
// webhook that selects the pod as the ones before left it, configurations in the order of their names.
void World::Site::AskWebhooks(std::shared_ptr<AdmissionRound> round, json pod) {
  for (; round->configuration < round->configurations.size(); ++round->configuration, round->webhook = 0) {
    const kube::ObjectRef configuration = round->configurations[round->configuration];
    const json& webhooks = Items(At(configuration->body, "webhooks"));
    while (round->webhook < webhooks.size()) {
      const size_t index = round->webhook++;
      kube::Labels labels;
      for (const auto& [key, value] : Members(At(pod, {"metadata", "labels"}))) labels[key] = TextOf(value);
      const absl::StatusOr<std::optional<pilot::WebhookTarget>> target =
          pilot::TargetOfWebhook(configuration->body, index, round->namespace_labels, labels);
      if (!target.ok()) return round->done(target.status());
      if (!target->has_value()) continue;
      if (pilot::InjectsSidecars(webhooks[index])) {
        return CallWebhook(std::move(pod), **target, CaBundle(*configuration, (*target)->webhook),
                           [this, round](absl::StatusOr<json> admitted) mutable {
                             if (!admitted.ok()) return round->done(std::move(admitted));
                             AskWebhooks(std::move(round), *std::move(admitted));
                           });
      }
      const absl::Status reached = foreign_webhooks_->Ask(**target);
      if (reached.ok() || !(*target)->fail_if_absent) continue;
      const std::string why(Message(reached));
      admissions_.Refused(pod, (*target)->webhook, why, !Items(At(pod, {"metadata", "ownerReferences"})).empty());
      return round->done(absl::UnavailableError(
          fmt::format("failed calling webhook \"{}\": failed to call webhook: {}", (*target)->webhook, why)));
    }
  }
  round->done(std::move(pod));
}

void World::Site::CallWebhook(json pod, const pilot::WebhookTarget& target, const std::string& ca_bundle,
                              absl::AnyInvocable<void(absl::StatusOr<json>)> done) {
  ++reviews_;
  json asked = pod;
  // Exactly one of the answer, the failure to connect and the end of the channel comes first.
  using Done = absl::AnyInvocable<void(absl::StatusOr<json>)>;
  auto once = std::make_shared<Done>([this, alive = std::weak_ptr<int>(alive_), name = target.webhook,
                                      pod = std::move(pod), may_fail = !target.fail_if_absent,
                                      done = std::move(done)](absl::StatusOr<json> answer) mutable {
    if (alive.expired()) return;
    WAVETANK_ASSERT(reviews_ > 0, reviews_, config_.name);
    --reviews_;
    if (!answer.ok()) {
      const std::string why(Message(answer.status()));
      if (may_fail) {
        admissions_.Bypassed(pod, name, why);
        return done(std::move(pod));
      }
      admissions_.Refused(pod, name, why, !Items(At(At(pod, "metadata"), "ownerReferences")).empty());
      // As kube-apiserver tells it (apiserver: pkg/admission/plugin/webhook/errors).
      return done(absl::Status(answer.status().code(),
                               fmt::format("failed calling webhook \"{}\": failed to call webhook: {}", name, why)));
    }
    const bool patched = !At(At(*answer, "response"), "patch").is_null();
    absl::StatusOr<json> admitted = pilot::ApplyAdmissionResponse(pod, *answer);
    if (!admitted.ok()) {
      admissions_.Refused(pod, "", std::string(Message(admitted.status())),
                          !Items(At(At(pod, "metadata"), "ownerReferences")).empty());
    } else if (patched) {
      admissions_.Injected(pod);
    } else {
      admissions_.LeftOut(pod);
    }
    done(std::move(admitted));
  });
  const auto finish = [once](absl::StatusOr<json> answer) {
    if (Done call = std::exchange(*once, nullptr); call != nullptr) call(std::move(answer));
  };
  std::string host, path = target.path;
  uint16_t port = static_cast<uint16_t>(target.port);
  if (target.url.empty()) {
    host = fmt::format("{}.{}.svc", target.service_name, target.service_namespace);
  } else if (absl::Status status = ParseWebhookUrl(target.url, &host, &port, &path); !status.ok()) {
    return finish(status);
  }
  const auto in_its_words = [this, target, ca_bundle, path] {
    json config = {{"caBundle", absl::Base64Escape(ca_bundle)}};
    if (target.url.empty()) {
      config["service"] = {{"namespace", target.service_namespace},
                           {"name", target.service_name},
                           {"path", path},
                           {"port", target.port}};
    } else {
      config["url"] = target.url;
    }
    return ReachIstio({{"clientConfig", std::move(config)}});
  };
  // What the certificate must say: a Service's name, or the URL's host.
  absl::StatusOr<std::shared_ptr<const envoysim::TlsClient>> tls = place_.TlsTo(ca_bundle, host);
  if (!tls.ok()) {
    // Dialled all the same, and by the system's roots, which know no mesh's.
    const absl::Status why = in_its_words();
    constexpr std::string_view kHint = "its caBundle holds no certificate; has istiod patched it?";
    return finish(absl::UnavailableError(why.ok() ? std::string(kHint) : fmt::format("{} ({})", Message(why), kHint)));
  }
  const absl::StatusOr<std::vector<IpAddress>> addresses = dns_->Resolve(host, kSystemNamespace);
  if (!addresses.ok()) return finish(addresses.status());
  Channels::Dialling dialling;
  dialling.from = api_server_;
  dialling.host = world_.host_;
  dialling.to = {addresses->front(), port};
  dialling.sni = host;
  dialling.tls = *std::move(tls);
  dialling.timeout = 10s;  // timeoutSeconds
  const SocketAddress to = dialling.to;
  const std::string url =
      fmt::format("{}?timeout=10s", target.url.empty() ? fmt::format("https://{}:{}{}", host, port, path) : target.url);
  auto opened = std::make_shared<std::weak_ptr<Channel>>();
  const auto review = std::make_shared<json>(
      pilot::MakeAdmissionReview(std::move(asked), fmt::format("{}-review-{}", config_.name, ++review_count_)));
  *opened =
      world_.channels_->Dial(std::move(dialling), [opened, finish, review, path, in_its_words, to, url,
                                                   alive = std::weak_ptr<int>(alive_)](const absl::Status& status) {
        const ChannelRef channel = opened->lock();
        if (!status.ok()) {
          if (alive.expired()) return finish(status);
          // What is wrong with the Service, or with what it shows; else nothing comes through in time, or back.
          const absl::Status words = in_its_words();
          if (!words.ok()) return finish(words);
          const bool refused = Message(status).find("connection refused") != std::string_view::npos;
          return finish(absl::UnavailableError(
              fmt::format("Post \"{}\": {}", url,
                          refused ? fmt::format("dial tcp {}: connect: connection refused", to.ToString())
                                  : "context deadline exceeded")));
        }
        if (channel == nullptr) return finish(absl::UnavailableError("closed"));
        // A 404, in the API server's words.
        if (!pilot::ServesWebhook(pilot::kInjectPath, path)) {
          channel->Close(Channel::End::kClient);
          return finish(absl::NotFoundError("the server could not find the requested resource"));
        }
        channel->OnClose(Channel::End::kClient, finish);
        channel->Send(Channel::End::kClient, [channel, finish, review, path] {
          if (channel->istiod() == nullptr) return;
          channel->istiod()->istiod().Admit(path, std::move(*review), [channel, finish](json answer) {
            channel->Send(Channel::End::kServer, [channel, finish, answer = std::move(answer)]() mutable {
              channel->Close(Channel::End::kClient);
              finish(std::move(answer));
            });
          });
        });
      });
}

}  // namespace wavetank::sim
