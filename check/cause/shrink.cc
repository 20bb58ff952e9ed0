#include "check/cause/shrink.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <numeric>
#include <set>

#include "check/cause/trials.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace wavetank::check {
namespace {

using nlohmann::json;

class Shrinking {
 public:
  Shrinking(const Question& question, const Story& story, const ShrinkOptions& options)
      : question_(question), story_(story), options_(options) {}

  absl::StatusOr<Shrunk> Run() {
    kept_.resize(story_.inputs.size());
    std::iota(kept_.begin(), kept_.end(), 0);
    Shrunk out;
    out.resumed = Resume();
    absl::StatusOr<std::vector<Answer>> ends = AskAll(question_, story_, {kept_, {}}, options_.at_a_time);
    if (!ends.ok()) return ends.status();
    trials_ += 2;
    if (!Shows((*ends)[0])) {
      return absl::FailedPreconditionError(
          fmt::format("{}: does not show '{}': {}; ask for something that it shows, `not: ...` of what does not hold",
                      story_.path, question_.text, (*ends)[0].found));
    }
    if (Shows((*ends)[1])) {
      return absl::FailedPreconditionError(
          fmt::format("{}: '{}' is shown without any input, so there is nothing to find; did you mean 'not: ...'?",
                      story_.path, question_.text));
    }
    answer_ = (*ends)[0];
    signature_ = answer_.signature;
    // What came after an invariant was broken changes nothing of it.
    if (question_.expectation.kind == "invariant" && answer_.done < kept_.size()) {
      std::vector<size_t> until(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(answer_.done));
      if (absl::Status status = Adopt({until}); !status.ok()) return status;
    }
    const struct {
      const char* what;
      std::vector<std::vector<size_t>> (Shrinking::*groups)() const;
    } levels[] = {
        {"clusters", &Shrinking::ByCluster}, {"moments", &Shrinking::ByMoment}, {"inputs", &Shrinking::Single}};
    size_t before = 0;
    do {
      before = kept_.size();
      for (const auto& level : levels) {
        if (absl::Status status = Reduce(level.what, (this->*level.groups)()); !status.ok()) return status;
      }
    } while (kept_.size() < before);
    if (absl::Status status = DropClusters(); !status.ok()) return status;
    if (absl::Status status = Simplify(); !status.ok()) return status;
    out.story = Part(kept_);
    out.answer = answer_;
    out.trials = trials_;
    if (!options_.progress.empty()) std::remove(options_.progress.c_str());
    return out;
  }

 private:
  bool Shows(const Answer& answer) const { return answer.judged && answer.holds; }

  // Not the same by another cause: that would be another story.
  bool ShowsTheSame(const Answer& answer) const { return Shows(answer) && answer.signature == signature_; }

  Story Part(const std::vector<size_t>& indices) const {
    Story out = story_;
    out.inputs.clear();
    for (const size_t i : indices) {
      out.inputs.push_back(story_.inputs[i]);
      out.inputs.back().seq = out.inputs.size() - 1;
    }
    // It ends where the answer was known.
    out.end =
        std::max(out.inputs.empty() ? Time{} : out.inputs.back().at, story_.header.Beginning() + answer_.virtual_time);
    return out;
  }

  // Takes the first of `candidates` that still shows it. False in `taken_`: none does.
  absl::Status Adopt(const std::vector<std::vector<size_t>>& candidates) {
    taken_ = false;
    const auto batch = static_cast<size_t>(std::max(options_.at_a_time, 1));
    for (size_t at = 0; at < candidates.size() && !taken_; at += batch) {
      std::vector<std::vector<size_t>> some;
      for (size_t i = at; i < std::min(candidates.size(), at + batch); ++i) {
        if (!tried_.contains(candidates[i])) some.push_back(candidates[i]);
      }
      if (some.empty()) continue;
      const absl::StatusOr<std::vector<Answer>> answers = AskAll(question_, story_, some, options_.at_a_time);
      if (!answers.ok()) return answers.status();
      trials_ += some.size();
      for (size_t i = 0; i < some.size(); ++i) {
        if (!ShowsTheSame((*answers)[i])) {
          if (tried_.size() < 100'000) tried_.insert(some[i]);
          continue;
        }
        kept_ = some[i];
        answer_ = (*answers)[i];
        taken_ = true;
        Save();
        break;
      }
    }
    return absl::OkStatus();
  }

  // Delta debugging over groups of inputs: larger shares first, then smaller ones, until no group can go.
  absl::Status Reduce(const char* what, std::vector<std::vector<size_t>> groups) {
    for (size_t pieces = 2; groups.size() > 1 || (groups.size() == 1 && pieces == 2);) {
      pieces = std::min(pieces, groups.size());
      std::vector<std::vector<size_t>> candidates;
      std::vector<std::pair<size_t, size_t>> ranges;
      for (size_t piece = pieces; piece-- > 0;) {  // what came last is least likely to be needed
        const size_t from = groups.size() * piece / pieces, to = groups.size() * (piece + 1) / pieces;
        if (from == to) continue;
        std::set<size_t> gone;
        for (size_t g = from; g < to; ++g) gone.insert(groups[g].begin(), groups[g].end());
        std::vector<size_t> rest;
        std::set_difference(kept_.begin(), kept_.end(), gone.begin(), gone.end(), std::back_inserter(rest));
        candidates.push_back(std::move(rest));
        ranges.emplace_back(from, to);
      }
      if (absl::Status status = Adopt(candidates); !status.ok()) return status;
      if (taken_) {
        const size_t which =
            static_cast<size_t>(std::find(candidates.begin(), candidates.end(), kept_) - candidates.begin());
        groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(ranges[which].first),
                     groups.begin() + static_cast<std::ptrdiff_t>(ranges[which].second));
        pieces = std::max<size_t>(pieces - 1, 2);
      } else if (pieces >= groups.size()) {
        break;
      } else {
        pieces *= 2;
      }
      if (options_.say) {
        options_.say(
            fmt::format("shrink: {}: {} of {} inputs, {} trials", what, kept_.size(), story_.inputs.size(), trials_));
      }
    }
    return absl::OkStatus();
  }

  template <class Key>
  std::vector<std::vector<size_t>> Group(Key key) const {
    std::map<decltype(key(size_t())), std::vector<size_t>> by;
    for (const size_t i : kept_) by[key(i)].push_back(i);
    std::vector<std::vector<size_t>> out;
    for (auto& [k, group] : by) out.push_back(std::move(group));
    return out;
  }
  std::vector<std::vector<size_t>> ByCluster() const {
    return Group([this](size_t i) { return ClustersOf(story_, story_.inputs[i]); });
  }
  std::vector<std::vector<size_t>> ByMoment() const {
    return Group([this](size_t i) { return story_.inputs[i].at; });
  }
  std::vector<std::vector<size_t>> Single() const {
    return Group([](size_t i) { return i; });
  }

  // Clusters of which no input is left, and that serve no other.
  absl::Status DropClusters() {
    std::set<std::string> used;
    for (const size_t i : kept_) {
      for (std::string& cluster : ClustersOf(story_, story_.inputs[i])) used.insert(std::move(cluster));
    }
    Story smaller = story_;
    json& clusters = smaller.header.world["clusters"];
    if (!clusters.is_array()) return absl::OkStatus();
    for (const json& cluster : clusters) {
      const std::string name = Text(cluster, "name");
      if (used.contains(name)) used.insert(Text(cluster, "controlPlane", name));
    }
    json left = json::array();
    for (const json& cluster : clusters) {
      if (used.contains(Text(cluster, "name"))) left.push_back(cluster);
    }
    if (left.size() == clusters.size() || left.empty()) return absl::OkStatus();
    clusters = std::move(left);
    if (smaller.header.world.contains("links")) {
      json links = json::array();
      for (const json& link : smaller.header.world["links"]) {
        const json& ends = At(link, "between");
        if (std::all_of(ends.begin(), ends.end(), [&](const json& end) { return used.contains(TextOf(end)); }))
          links.push_back(link);
      }
      smaller.header.world["links"] = std::move(links);
    }
    return AdoptStory(std::move(smaller));
  }

  absl::Status AdoptStory(Story changed) {
    const absl::StatusOr<std::vector<Answer>> answers = AskAll(question_, changed, {kept_}, 1);
    ++trials_;
    // A world that cannot be made so stays as it was.
    taken_ = answers.ok() && ShowsTheSame((*answers)[0]);
    if (!taken_) return absl::OkStatus();
    story_ = std::move(changed);
    answer_ = (*answers)[0];
    tried_.clear();
    return absl::OkStatus();
  }

  // Fewer replicas, fewer requests.
  absl::Status Simplify() {
    for (const size_t i : kept_) {
      const json& body = story_.inputs[i].body;
      if (const json& replicas = At(body, {"object", "spec", "replicas"}); replicas.is_number() && replicas > 1) {
        Story changed = story_;
        changed.inputs[i].body["object"]["spec"]["replicas"] = 1;
        if (absl::Status status = AdoptStory(std::move(changed)); !status.ok()) return status;
      }
      for (int64_t requests = story_.inputs[i].kind == "traffic" ? Number(body, "requests") / 10 : 0; requests >= 1;
           requests /= 10) {
        Story changed = story_;
        changed.inputs[i].body["requests"] = requests;
        if (absl::Status status = AdoptStory(std::move(changed)); !status.ok()) return status;
        if (!taken_) break;
      }
    }
    return absl::OkStatus();
  }

  std::string Subject() const {
    return fmt::format("{} {} {}", question_.text, question_.negated, story_.inputs.size());
  }
  void Save() const {
    if (options_.progress.empty()) return;
    const std::string beside = options_.progress + ".new";
    std::ofstream(beside) << JsonText(json{{"subject", Subject()}, {"kept", kept_}}) << "\n";
    std::rename(beside.c_str(), options_.progress.c_str());
  }
  // Of another question, or of anything else: begins anew.
  bool Resume() {
    if (options_.progress.empty()) return false;
    std::ifstream file(options_.progress);
    if (!file) return false;
    const json in = ParseJson(std::string(std::istreambuf_iterator<char>(file), {}));
    if (!in.is_object() || TextOf(At(in, {"subject"})) != Subject() || !At(in, {"kept"}).is_array()) return false;
    std::vector<size_t> kept;
    for (const json& index : in["kept"]) {
      if (!index.is_number_unsigned() || index >= story_.inputs.size() || (!kept.empty() && index <= kept.back()))
        return false;
      kept.push_back(index.get<size_t>());
    }
    kept_ = std::move(kept);
    return true;
  }

  const Question& question_;
  Story story_;
  const ShrinkOptions& options_;
  std::vector<size_t> kept_;  // indices, ascending
  Answer answer_;
  std::string signature_;                // of the whole log's answer
  std::set<std::vector<size_t>> tried_;  // that do not show it
  size_t trials_ = 0;
  bool taken_ = false;
};

}  // namespace

absl::StatusOr<Shrunk> Shrink(const Question& question, const Story& story, const ShrinkOptions& options) {
  return Shrinking(question, story, options).Run();
}

}  // namespace wavetank::check
