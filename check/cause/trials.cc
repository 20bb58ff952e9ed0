#include "check/cause/trials.h"

#include <unistd.h>

#include <algorithm>

#include "check/game_day/fork_pool.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "nlohmann/json.hpp"

namespace wavetank::check {
namespace {

using nlohmann::json;

std::string Encode(const absl::StatusOr<Answer>& answer) {
  if (!answer.ok()) {
    return JsonText(json{{"error", std::string(Message(answer.status()))}});
  }
  return JsonText(json{{"judged", answer->judged},
                       {"holds", answer->holds},
                       {"found", answer->found},
                       {"at", answer->at.time_since_epoch().count()},
                       {"inputs", answer->inputs},
                       {"signature", answer->signature},
                       {"done", answer->done},
                       {"ns", answer->virtual_time.count()}});
}

absl::StatusOr<Answer> Decode(const std::string& text) {
  const json in = ParseJson(text);  // what a fork of this program wrote
  if (in.is_discarded()) return absl::InternalError("a trial's answer is not whole");
  if (in.contains("error")) return absl::InvalidArgumentError(in["error"].get<std::string>());
  Answer out;
  out.judged = in["judged"].get<bool>();
  out.holds = in["holds"].get<bool>();
  out.found = in["found"].get<std::string>();
  out.at = Time(Duration(in["at"].get<int64_t>()));
  out.inputs = in["inputs"].get<std::vector<uint64_t>>();
  out.signature = in["signature"].get<std::string>();
  out.done = in["done"].get<size_t>();
  out.virtual_time = Duration(in["ns"].get<int64_t>());
  return out;
}

}  // namespace

int Processors() { return static_cast<int>(std::clamp<long>(sysconf(_SC_NPROCESSORS_ONLN), 1, 256)); }

absl::StatusOr<std::vector<Answer>> AskAll(const Question& question, const Story& story,
                                           const std::vector<std::vector<size_t>>& parts, int at_a_time) {
  const absl::StatusOr<std::vector<std::string>> texts = InForks(
      parts.size(), at_a_time, [&](size_t i) { return Encode(Ask(question, story, parts[i])); }, nullptr);
  if (!texts.ok()) return texts.status();
  std::vector<Answer> out;
  for (const std::string& text : *texts) {
    absl::StatusOr<Answer> answer = Decode(text);
    if (!answer.ok()) return answer.status();
    out.push_back(*std::move(answer));
  }
  return out;
}

}  // namespace wavetank::check
