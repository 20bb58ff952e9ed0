#include "core/election/record.h"

#include <chrono>

#include "absl/status/status.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/kube/time_format.h"
#include "core/x509/calendar.h"
#include "fmt/format.h"

namespace wavetank::election {
namespace {

using nlohmann::json;

// Kubernetes' Time has whole seconds, its MicroTime six digits more.
std::string SecondsText(Time time) { return kube::FormatRfc3339(x509::UnixSeconds(time)); }
std::string MicrosText(Time time) {
  std::string text = SecondsText(time);
  text.pop_back();  // "Z"
  const auto since = time.time_since_epoch();
  return fmt::format("{}.{:06}Z", text, (since - std::chrono::floor<std::chrono::seconds>(since)) / 1us);
}

Time ReadTime(const std::string& text) {
  const std::optional<int64_t> seconds = kube::ParseRfc3339(text);
  if (!seconds) return Time{};
  // Up to six digits; a MicroTime has them all.
  int64_t micros = 0;
  const size_t dot = text.find('.');
  for (size_t digit = 1; digit <= 6; ++digit) {
    const bool there =
        dot != std::string::npos && dot + digit < text.size() && text[dot + digit] >= '0' && text[dot + digit] <= '9';
    micros = micros * 10 + (there ? text[dot + digit] - '0' : 0);
  }
  const Time whole = x509::FromUnixSeconds(*seconds);
  return whole > Time::max() - 1s ? whole : whole + std::chrono::microseconds(micros);
}

// Names and order of LeaderElectionRecord's fields.
std::string RecordText(const LeaderRecord& record) {
  nlohmann::ordered_json out;
  out["holderIdentity"] = record.holder;
  out["holderKey"] = record.key;
  out["leaseDurationSeconds"] = record.lease_seconds;
  out["acquireTime"] = SecondsText(record.acquired);
  out["renewTime"] = SecondsText(record.renewed);
  out["leaderTransitions"] = record.transitions;
  return JsonText(out);
}

LeaderRecord FromJson(const json& in, const char* transitions) {
  LeaderRecord out;
  out.holder = Text(in, "holderIdentity");
  out.key = Text(in, "holderKey");
  out.lease_seconds = static_cast<int>(Number(in, "leaseDurationSeconds"));
  out.acquired = ReadTime(Text(in, "acquireTime"));
  out.renewed = ReadTime(Text(in, "renewTime"));
  out.transitions = Number(in, transitions);
  return out;
}

}  // namespace

absl::StatusOr<StoredRecord> ReadRecord(const LockName& lock, const kube::Object& object) {
  StoredRecord out;
  if (lock.lease) {
    out.record = FromJson(At(object.body, "spec"), "leaseTransitions");
    out.raw = RecordText(out.record);
    return out;
  }
  const auto it = object.meta.annotations.find(kLeaderAnnotation);
  if (it == object.meta.annotations.end()) return out;
  const json read = ParseJson(it->second);
  if (!read.is_object()) {
    return absl::InvalidArgumentError(
        fmt::format("annotation {} of ConfigMap {} is no JSON object", kLeaderAnnotation, lock.Describe()));
  }
  out.record = FromJson(read, "leaderTransitions");
  out.raw = it->second;
  return out;
}

json WithRecord(const LockName& lock, const kube::ObjectRef& before, const LeaderRecord& record) {
  json body = before != nullptr ? before->body : json();
  if (before == nullptr) {
    // The uid is nobody's: an object that is there by now has another one, and this is a conflict.
    body = {{"apiVersion", lock.kind().ApiVersion()},
            {"kind", lock.kind().kind},
            {"metadata", {{"name", lock.name}, {"namespace", lock.ns}, {"uid", "to-be-created"}}}};
  }
  if (!lock.lease) {
    json& annotations = body["metadata"]["annotations"];
    if (!annotations.is_object()) annotations = json::object();
    annotations[std::string(kLeaderAnnotation)] = RecordText(record);
    return body;
  }
  body["spec"] = {{"holderIdentity", record.holder},
                  {"leaseDurationSeconds", record.lease_seconds},
                  {"acquireTime", MicrosText(record.acquired)},
                  {"renewTime", MicrosText(record.renewed)},
                  {"leaseTransitions", record.transitions}};
  return body;
}

}  // namespace wavetank::election
