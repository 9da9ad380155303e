#include "penstock/trainer/ranks/rank_share.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/base/hash.h"
#include "penstock/trainer/borrowed.h"

namespace penstock {
namespace {

std::string sha256_of_numbers(const std::vector<Parameter>& tensors) {
  Sha256 hash;
  for (const Parameter& one : tensors) {
    const at::Tensor host = one.value.detach().cpu();
    const TensorView view = numbers_of(host);
    hash.add(std::span(view.data, view.bytes()));
  }
  return hash.hex();
}

}  // namespace

std::vector<at::Tensor> values_of(const std::vector<Parameter>& parameters) {
  std::vector<at::Tensor> values;
  for (const Parameter& one : parameters) values.push_back(one.value);
  return values;
}

const Vote& RankShare::vote(const RankGroup::Share& share) {
  const Vote& vote = ranks_.vote(share);
  if (!vote.no_memory) return vote;
  std::string short_ones;
  for (std::size_t i = 0; i < vote.ballots.size(); ++i)
    if (vote.ballots[i].no_memory)
      short_ones += (short_ones.empty() ? "rank " : ", rank ") +
                    std::to_string(i) + " on " + ranks_.facts().hosts[i];
  throw Error(ErrorKind::out_of_memory,
              {.code = "trainer.out_of_memory",
               .what = "out of memory while taking a step of the model",
               .where = short_ones,
               .why = "the share of the batch does not fit into memory there",
               .next = "use a smaller loader.batch_size, or more ranks"});
}

void RankShare::sum(const std::vector<at::Tensor>& tensors) {
  std::vector<TensorView> views;
  for (const at::Tensor& one : tensors) views.push_back(numbers_of(one));
  ranks_.sum(views);
}

void RankShare::copy_from_first(const std::vector<Parameter>& tensors) {
  std::vector<TensorView> views;
  for (const Parameter& one : tensors)
    views.push_back(numbers_of(one.value.detach()));
  ranks_.copy_from_first(views);
}

void RankShare::check_same(const std::vector<Parameter>& tensors) {
  const std::vector<std::string> all =
      ranks_.gather(sha256_of_numbers(tensors));
  const auto other = std::ranges::find_if(
      all, [&](const std::string& one) { return one != all.front(); });
  if (other == all.end()) return;
  const auto rank = static_cast<std::size_t>(other - all.begin());
  throw Error(
      ErrorKind::device,
      {.code = "ranks.differ",
       .what = "the ranks do not hold the same weights",
       .where =
           "rank " + std::to_string(rank) + " on " + ranks_.facts().hosts[rank],
       .why = "the SHA-256 of the weights on that rank is " + *other +
              ", and on rank 0 " + all.front(),
       .next = "check the memory of that machine ('penstock doctor'), then "
               "start all ranks again with --resume latest"});
}

std::vector<double> RankShare::gathered(const std::vector<double>& mine,
                                        std::int64_t width) {
  const auto numbers = static_cast<std::size_t>(width);
  const std::string bytes(reinterpret_cast<const char*>(mine.data()),
                          mine.size() * sizeof(double));
  std::vector<std::vector<double>> rows;
  for (const std::string& of_rank : ranks_.gather(bytes))
    for (std::size_t at = 0; at < of_rank.size();
         at += numbers * sizeof(double)) {
      std::vector<double>& row = rows.emplace_back(numbers);
      std::memcpy(row.data(), of_rank.data() + at, numbers * sizeof(double));
    }
  std::ranges::stable_sort(
      rows, {}, [](const std::vector<double>& row) { return row[0]; });
  std::vector<double> all;
  for (const std::vector<double>& row : rows)
    all.insert(all.end(), row.begin(), row.end());
  return all;
}

void RankShare::sum(std::vector<double>& numbers) {
  const TensorView view{.data = reinterpret_cast<std::byte*>(numbers.data()),
                        .dtype = Dtype::float64,
                        .shape = {std::ssize(numbers)}};
  ranks_.sum(std::span(&view, 1));
}

namespace {

/// Gives entries of `worst` the picture that `other` has of the same row.
void take_pictures(Json::Array& worst, const Json::Array& other) {
  for (std::size_t i = 0; i < std::min(worst.size(), other.size()); ++i)
    if (const Json* picture = other[i].find("picture"))
      worst[i]["picture"] = *picture;
}

std::int64_t sample_of(const Json& text) {
  return text.find("sample")->integer();
}

const Json::Array& list_in(const Json& details, const char* name) {
  static const Json::Array none;
  const Json* list = details.is_object() ? details.find(name) : nullptr;
  return list != nullptr && list->is_array() ? list->array() : none;
}

}  // namespace

void RankShare::merge(Json& details, std::int64_t most_texts) {
  Json mine{Json::Object{}};
  for (const char* name : {"worst", "texts"})
    mine[name] = list_in(details, name);
  Json::Array worst = list_in(details, "worst"), texts;
  for (const std::string& text : ranks_.gather(mine.dump())) {
    const Json other = Json::parse(text, "the details of a validation");
    take_pictures(worst, list_in(other, "worst"));
    std::ranges::copy(list_in(other, "texts"), std::back_inserter(texts));
  }
  std::ranges::stable_sort(texts, {}, sample_of);
  if (std::ssize(texts) > most_texts)
    texts.resize(static_cast<std::size_t>(most_texts));
  if (!worst.empty()) details["worst"] = std::move(worst);
  if (!texts.empty()) details["texts"] = std::move(texts);
}

}  // namespace penstock
