#include "check/cause/bisect.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "check/cause/trials.h"
#include "fmt/format.h"

namespace wavetank::check {
namespace {

std::vector<size_t> FirstOnes(size_t count) {
  std::vector<size_t> out(count);
  std::iota(out.begin(), out.end(), 0);
  return out;
}

bool Asks(const replay::LogInput& input) { return input.kind == "traffic"; }

class Search {
 public:
  // `besides`: inputs that are done in every world, behind the first ones.
  Search(const Question& question, const Story& story, int at_a_time,
         const std::function<void(std::string_view)>& progress, std::vector<size_t> besides = {})
      : question_(question), story_(story), at_a_time_(at_a_time), progress_(progress), besides_(std::move(besides)) {}

  absl::StatusOr<Bisection> Run() {
    const size_t all = story_.inputs.size();
    if (absl::Status status = Try({all}); !status.ok()) return status;
    if (Holds(all)) return Result(std::nullopt);
    bad_ = all;
    // What an invariant's breach followed from had been done by then.
    if (question_.expectation.kind == "invariant" && !question_.negated) bad_ = std::min(all, known_.at(all).done);
    known_.try_emplace(bad_, known_.at(all));
    // A mesh that is not there yet may not hold it either, so a good beginning is looked for first.
    if (absl::Status status = FindGood(); !status.ok()) return status;
    if (absl::Status status = Narrow(); !status.ok()) return status;
    return Result(bad_ - 1);
  }

  // nullopt: no boundary lies between the two.
  absl::StatusOr<std::optional<Bisection>> Between(size_t good, size_t bad) {
    if (absl::Status status = Try({good, bad}); !status.ok()) return status;
    if (!Holds(good) || Holds(bad)) return std::nullopt;
    good_ = good;
    bad_ = bad;
    if (absl::Status status = Narrow(); !status.ok()) return status;
    return Result(bad_ - 1);
  }

 private:
  absl::Status Narrow() {
    while (bad_ - good_ > 1) {
      const size_t pieces = std::min<size_t>(static_cast<size_t>(at_a_time_) + 1, bad_ - good_);
      std::vector<size_t> counts;
      for (size_t i = 1; i < pieces; ++i) counts.push_back(good_ + (bad_ - good_) * i / pieces);
      if (absl::Status status = Try(counts); !status.ok()) return status;
      for (const size_t count : counts) {
        if (Holds(count)) {
          good_ = count;
        } else {
          bad_ = count;
          break;
        }
      }
      if (progress_) {
        progress_(fmt::format("bisect: holds after {} inputs, not after {}; {} trials", good_, bad_, trials_));
      }
    }
    return absl::OkStatus();
  }

  bool Holds(size_t count) const {
    const Answer& answer = known_.at(count);
    return answer.holds || !answer.judged;
  }

  absl::Status Try(const std::vector<size_t>& counts) {
    std::vector<std::vector<size_t>> parts;
    std::vector<size_t> asked;
    for (const size_t count : counts) {
      if (known_.contains(count)) continue;
      asked.push_back(count);
      parts.push_back(FirstOnes(count));
      parts.back().insert(parts.back().end(), besides_.begin(), besides_.end());
    }
    absl::StatusOr<std::vector<Answer>> answers = AskAll(question_, story_, parts, at_a_time_);
    if (!answers.ok()) return answers.status();
    for (size_t i = 0; i < asked.size(); ++i) known_[asked[i]] = (*answers)[i];
    trials_ += asked.size();
    return absl::OkStatus();
  }

  absl::Status FindGood() {
    for (size_t pieces = 2; pieces <= 64; pieces *= 2) {
      std::vector<size_t> counts;
      for (size_t i = 0; i < pieces; ++i) counts.push_back(bad_ * i / pieces);
      counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
      if (absl::Status status = Try(counts); !status.ok()) return status;
      for (size_t i = counts.size(); i-- > 0;) {
        if (!Holds(counts[i])) continue;
        good_ = counts[i];
        if (i + 1 < counts.size()) bad_ = counts[i + 1];
        return absl::OkStatus();
      }
      if (counts.size() < pieces) break;
    }
    return absl::FailedPreconditionError(
        fmt::format("{}: '{}' holds after none of {} beginnings of the log that were tried, so nothing breaks it; {}",
                    story_.path, question_.text, trials_, known_.at(bad_).found));
  }

  Bisection Result(std::optional<size_t> input) const {
    Bisection out;
    out.input = input;
    out.trials = trials_;
    const size_t end = input ? *input + 1 : story_.inputs.size();
    out.found = known_.at(end).found;
    out.at = known_.at(end).at;
    if (input) {
      const Answer& before = known_.at(*input);
      out.before = before.judged ? before.found : "nothing was sent yet";
    }
    return out;
  }

  const Question& question_;
  const Story& story_;
  const int at_a_time_;
  const std::function<void(std::string_view)>& progress_;
  const std::vector<size_t> besides_;
  std::map<size_t, Answer> known_;  // by how many of the first inputs
  size_t good_ = 0, bad_ = 0, trials_ = 0;
};

}  // namespace

absl::StatusOr<Bisection> Bisect(const Question& question, const Story& story, int at_a_time,
                                 const std::function<void(std::string_view)>& progress) {
  absl::StatusOr<Bisection> found = Search(question, story, at_a_time, progress).Run();
  if (!found.ok() || !found->input || !Asks(story.inputs[*found->input])) return found;
  // Requests show what is wrong, and make nothing wrong: sent when those before them were, they would have done.
  const size_t shows = *found->input;
  size_t last = shows;  // behind the last change before them
  while (last > 0 && Asks(story.inputs[last - 1])) --last;
  size_t before = last;
  while (before > 0 && !Asks(story.inputs[before - 1])) --before;
  if (before == 0 || before == last) return found;
  absl::StatusOr<std::optional<Bisection>> cause =
      Search(question, story, at_a_time, progress, {shows}).Between(before, last);
  if (!cause.ok()) return cause.status();
  if (!*cause) return found;
  (*cause)->trials += found->trials;
  return **std::move(cause);
}

}  // namespace wavetank::check
