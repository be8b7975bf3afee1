"""Faults that could have been written: each a small replacement in a file, and the test that notices it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """A replacement in the library that makes a number wrong."""

    name: str
    file: str
    old: str
    """Stands exactly once in the file."""
    new: str
    test: str
    """Fails with the fault and passes without it."""


FAULTS = (
    Fault(
        "the lens applies the final norm at the last depth only",
        "transformer/analysis/steps/logit_lens.py",
        (
            "                stream, norm.normalized_shape, _double(norm.weight), _double(norm.bias), norm.e"
            "ps\n            )"
        ),
        (
            "                stream, norm.normalized_shape, _double(norm.weight), _double(norm.bias), norm.e"
            "ps\n            ) * torch.eye(len(stream), dtype=stream.dtype)[-1][:, None] + stream * (1 - torc"
            "h.eye(len(stream))[-1][:, None])"
        ),
        (
            "tests/analysis/steps/test_step_checks.py::test_inner_depths_are_those_of_shortened_decoders_and"
            "_wrong_ones_are_noticed"
        ),
    ),
    Fault(
        "the lens reads inner depths one layer late",
        "transformer/analysis/steps/logit_lens.py",
        ("stream = torch.stack([embedded, *map(self._output_of, range(len(self._model.decoder.layers)))])"),
        (
            "stream = torch.stack([*map(self._output_of, range(len(self._model.decoder.layers))), self._outp"
            "ut_of(len(self._model.decoder.layers) - 1)])"
        ),
        (
            "tests/analysis/steps/test_step_checks.py::test_inner_depths_are_those_of_shortened_decoders_and"
            "_wrong_ones_are_noticed"
        ),
    ),
    Fault(
        "the lens shows the embedding at every inner depth",
        "transformer/analysis/steps/logit_lens.py",
        ("stream = torch.stack([embedded, *map(self._output_of, range(len(self._model.decoder.layers)))])"),
        (
            "stream = torch.stack([embedded] * len(self._model.decoder.layers) + [self._output_of(len(self._"
            "model.decoder.layers) - 1)])"
        ),
        (
            "tests/analysis/steps/test_step_checks.py::test_inner_depths_are_those_of_shortened_decoders_and"
            "_wrong_ones_are_noticed"
        ),
    ),
    Fault(
        "the lens forgets the positions at the first depth",
        "transformer/analysis/steps/logit_lens.py",
        'embedded = embedded + self._seen("positions") if self._is_there("positions") else embedded',
        "embedded = embedded",
        (
            "tests/analysis/steps/test_step_checks.py::test_inner_depths_are_those_of_shortened_decoders_and"
            "_wrong_ones_are_noticed"
        ),
    ),
    Fault(
        "contributions with the two tokens swapped",
        "transformer/analysis/steps/logit_lens.py",
        "direction = (weight[token].double() - weight[other].double()).numpy()",
        "direction = (weight[other].double() - weight[token].double()).numpy()",
        "tests/analysis/steps/test_logit_lens.py::test_contributions_sum_to_the_difference",
    ),
    Fault(
        "the difference of logits with its sign turned",
        "transformer/analysis/steps/logit_lens.py",
        "return float(self.logits[token] - self.logits[other])",
        "return float(self.logits[other] - self.logits[token])",
        "tests/analysis/steps/test_logit_lens.py::test_contributions_sum_to_the_difference",
    ),
    Fault(
        "a norm that does not centre the parts",
        "transformer/analysis/steps/logit_lens.py",
        "return (row - row.mean()) * gain",
        "return row * gain",
        "tests/analysis/steps/test_logit_lens.py::test_contributions_sum_to_the_difference",
    ),
    Fault(
        "a norm with the sample variance",
        "transformer/analysis/steps/logit_lens.py",
        "x.var(correction=0)",
        "x.var(correction=1)",
        "tests/analysis/steps/test_logit_lens.py::test_contributions_sum_to_the_difference",
    ),
    Fault(
        "a norm whose bias is lost",
        "transformer/analysis/steps/logit_lens.py",
        "through(self._biases) + _double(norm.bias)",
        "through(self._biases)",
        "tests/analysis/steps/test_logit_lens.py::test_contributions_sum_to_the_difference",
    ),
    Fault(
        "the bias of W_O is lost",
        "transformer/analysis/steps/logit_lens.py",
        'torch.einsum("mhd,hd->m", output, shared) + _double(attention.output.bias)',
        'torch.einsum("mhd,hd->m", output, shared)',
        "tests/analysis/steps/test_logit_lens.py::test_contributions_sum_to_the_difference",
    ),
    Fault(
        "heads keep the bias of their values",
        "transformer/analysis/steps/logit_lens.py",
        'added = torch.einsum("mhd,hd->hm", output, context - shared)',
        'added = torch.einsum("mhd,hd->hm", output, context)',
        "tests/analysis/steps/test_logit_lens.py::test_contributions_sum_to_the_difference",
    ),
    Fault(
        "the parts of heads in reverse",
        "transformer/analysis/steps/logit_lens.py",
        "for head, row in enumerate(added)]",
        "for head, row in enumerate(added.flip(0))]",
        ("tests/analysis/steps/test_logit_lens.py::test_a_head_s_contribution_is_what_the_logits_lose_without_it"),
    ),
    Fault(
        "the residual is left out of a sum",
        "transformer/analysis/steps/logit_lens.py",
        'return self._seen(f"{layer}.{sublayer}.residual") + output',
        "return output",
        "tests/analysis/steps/test_logit_lens.py::test_contributions_sum_to_the_difference",
    ),
    Fault(
        "before and after of a head's effect swapped",
        "transformer/analysis/heads/importance.py",
        "before=p[step].item(),\n        after=q[step].item(),",
        "before=q[step].item(),\n        after=p[step].item(),",
        (
            "tests/analysis/heads/test_effects_on_small_tables.py::test_the_first_step_that_changes_is_told_"
            "with_its_token_before_and_after"
        ),
    ),
    Fault(
        "KL of the effect the wrong way round",
        "transformer/analysis/heads/importance.py",
        "(base.exp() * (base - without))",
        "(without.exp() * (without - base))",
        (
            "tests/analysis/heads/test_effects_on_small_tables.py::test_the_divergence_is_that_of_the_output"
            "_with_the_head_from_the_one_without_on_average"
        ),
    ),
    Fault(
        "KL summed over the steps instead of averaged",
        "transformer/analysis/heads/importance.py",
        ".sum(dim=-1).mean().clamp(min=0)",
        ".sum(dim=-1).sum().clamp(min=0)",
        (
            "tests/analysis/heads/test_effects_on_small_tables.py::test_the_divergence_is_that_of_the_output"
            "_with_the_head_from_the_one_without_on_average"
        ),
    ),
    Fault(
        "the change of the log-probability with its sign turned",
        "transformer/analysis/heads/importance.py",
        "log_prob=float((b - a).sum()),",
        "log_prob=float((a - b).sum()),",
        (
            "tests/analysis/heads/test_effects_on_small_tables.py::test_the_log_probability_changes_by_the_s"
            "um_over_the_tokens"
        ),
    ),
    Fault(
        "the last step that changes in place of the first",
        "transformer/analysis/heads/importance.py",
        "step = other[0] if other",
        "step = other[-1] if other",
        (
            "tests/analysis/heads/test_effects_on_small_tables.py::test_the_first_step_that_changes_is_told_"
            "with_its_token_before_and_after"
        ),
    ),
    Fault(
        "padding may be written instead",
        "transformer/analysis/heads/importance.py",
        "writable[:, pad_id] = -torch.inf  # is never written",
        "pass",
        (
            "tests/analysis/heads/test_effects_on_small_tables.py::test_the_first_step_that_changes_is_told_"
            "with_its_token_before_and_after"
        ),
    ),
    Fault(
        "the average of the wrong layer",
        "transformer/analysis/heads/importance.py",
        "return weights[layer].mean(axis=0",
        "return weights[layer - 1].mean(axis=0",
        (
            "tests/analysis/heads/test_effects_on_small_tables.py::test_the_average_is_over_the_heads_of_the"
            "_layer_that_is_asked_for"
        ),
    ),
    Fault(
        "a set leaves out the next head",
        "transformer/analysis/heads/ablations.py",
        "[row, at.head] = False",
        "[row, at.head - 1] = False",
        "tests/analysis/heads/test_head_ablations.py::test_a_row_without_some_heads_is_a_pass_without_them",
    ),
    Fault(
        "means are added to the kept heads",
        "transformer/analysis/heads/ablations.py",
        "(mean * ~kept[..., None])",
        "(mean * kept[..., None])",
        ("tests/interventions/test_head_means.py::test_the_effect_of_a_head_at_its_mean_is_that_of_the_switch"),
    ),
    Fault(
        "heads of the encoder stay in",
        "transformer/analysis/heads/ablations.py",
        'off = rows_off(model, distinct, "encoder", means)',
        'off = rows_off(model, [()] * len(distinct), "encoder", means)',
        "tests/analysis/heads/test_head_ablations.py::test_a_row_without_some_heads_is_a_pass_without_them",
    ),
    Fault(
        "the encoder's memory of another set",
        "transformer/analysis/heads/ablations.py",
        "return found[[distinct.index(part) for part in parts]]",
        "return found[[len(distinct) - 1 - distinct.index(part) for part in parts]]",
        "tests/analysis/heads/test_head_ablations.py::test_a_row_without_some_heads_is_a_pass_without_them",
    ),
    Fault(
        "a set of heads off in the neighbouring row",
        "transformer/analysis/heads/ablations.py",
        "[row, at.head] = False",
        "[row - 1, at.head] = False",
        "tests/analysis/heads/test_head_ablations.py::test_a_row_without_some_heads_is_a_pass_without_them",
    ),
    Fault(
        "the smallest set's margin from the first step only",
        "transformer/analysis/heads/minimal_set.py",
        "return slack.amin(dim=-1), ~stays.all(dim=-1)",
        "return slack[:, 0], ~stays.all(dim=-1)",
        (
            "tests/analysis/heads/test_effects_on_small_tables.py::test_the_margin_of_any_change_is_that_of_"
            "the_step_nearest_to_it"
        ),
    ),
    Fault(
        "a set counts where any step stays",
        "transformer/analysis/heads/minimal_set.py",
        "return slack.amin(dim=-1), ~stays.all(dim=-1)",
        "return slack.amin(dim=-1), ~stays.any(dim=-1)",
        (
            "tests/analysis/heads/test_effects_on_small_tables.py::test_the_margin_of_any_change_is_that_of_"
            "the_step_nearest_to_it"
        ),
    ),
    Fault(
        "what stands before the goal may change",
        "transformer/analysis/heads/minimal_set.py",
        "return miss, before & there",
        "return miss, there",
        (
            "tests/analysis/heads/test_effects_on_small_tables.py::test_a_token_at_a_step_is_reached_only_wh"
            "ere_all_before_it_stays"
        ),
    ),
    Fault(
        "the goal one step late",
        "transformer/analysis/heads/minimal_set.py",
        "at_step = writable[:, goal.step]",
        "at_step = writable[:, goal.step - 1]",
        (
            "tests/analysis/heads/test_effects_on_small_tables.py::test_a_token_at_a_step_is_reached_only_wh"
            "ere_all_before_it_stays"
        ),
    ),
    Fault(
        "the number of sets of a search off by one size",
        "transformer/analysis/heads/minimal_set.py",
        "range(1, min(exact, most) + 1))",
        "range(1, min(exact, most)))",
        "tests/analysis/heads/test_head_ablations.py::test_the_number_of_trials_is_known_before",
    ),
    Fault(
        "the wrong token is erased",
        "transformer/analysis/heads/leave_one_out.py",
        "mask[rows, :, :, rows] = False",
        "mask[rows, :, :, rows - 1] = False",
        ("tests/analysis/heads/test_head_ablations.py::test_a_token_that_is_hidden_is_a_token_that_is_padding"),
    ),
    Fault(
        "erased from cross-attention alone though hidden",
        "transformer/analysis/heads/leave_one_out.py",
        '(self.how == "hidden" and site.stack == "encoder")',
        '(self.how == "cross" and site.stack == "encoder")',
        ("tests/analysis/heads/test_head_ablations.py::test_a_token_that_is_hidden_is_a_token_that_is_padding"),
    ),
    Fault(
        "the loss of erasing with its sign turned",
        "transformer/analysis/heads/leave_one_out.py",
        "return (whole - without).T.numpy()",
        "return (without - whole).T.numpy()",
        ("tests/analysis/heads/test_head_ablations.py::test_a_token_that_is_hidden_is_a_token_that_is_padding"),
    ),
    Fault(
        "ties at their last rank",
        "transformer/analysis/heads/leave_one_out.py",
        "return (last - (counts - 1) / 2)[places]",
        "return last[places]",
        "tests/analysis/heads/test_head_ablations.py::test_rank_correlations_are_pandas_with_ties",
    ),
    Fault(
        "rank correlation without the square root",
        "transformer/analysis/heads/leave_one_out.py",
        "size = np.sqrt((x * x).sum() * (y * y).sum())",
        "size = (x * x).sum() * (y * y).sum()",
        "tests/analysis/heads/test_head_ablations.py::test_rank_correlations_are_pandas_with_ties",
    ),
    Fault(
        "distances in nats",
        "transformer/analysis/heads/similarity.py",
        "/ log(2)",
        "",
        "tests/analysis/heads/test_head_survey.py::test_distances_are_jensen_shannons_by_its_definition",
    ),
    Fault(
        "distances without the square root",
        "transformer/analysis/heads/similarity.py",
        "divergence.clamp(min=0).sqrt()",
        "divergence.clamp(min=0)",
        "tests/analysis/heads/test_head_survey.py::test_distances_are_jensen_shannons_by_its_definition",
    ),
    Fault(
        "single linkage in place of average",
        "transformer/analysis/heads/similarity.py",
        "joined = (sizes[0] * between[a] + sizes[1] * between[b]) / sum(sizes)",
        "joined = np.minimum(between[a], between[b])",
        (
            "tests/analysis/heads/test_head_survey.py::test_groups_are_those_of_average_linkage_computed_ane"
            "w_at_each_step"
        ),
    ),
    Fault(
        "alignment error without its factor 2",
        "transformer/analysis/heads/survey.py",
        "error_rate=1 - 2 * right",
        "error_rate=1 - right",
        ("tests/analysis/heads/test_head_survey.py::test_alignment_errors_are_those_of_the_metric_over_all_pairs"),
    ),
    Fault(
        "rows without a choice counted",
        "transformer/analysis/heads/survey.py",
        "rows = real & (allowed.sum(dim=-1) > 1)",
        "rows = real & (allowed.sum(dim=-1) > 0)",
        (
            "tests/analysis/heads/test_head_survey.py::test_entropy_evenness_and_the_largest_weight_leave_ou"
            "t_rows_without_a_choice"
        ),
    ),
    Fault(
        "padding counted among the queries",
        "transformer/analysis/heads/survey.py",
        'real = batch.source_mask if stack == "encoder" else batch.target_mask',
        'real = torch.ones_like(batch.source_mask if stack == "encoder" else batch.target_mask)',
        (
            "tests/analysis/heads/test_head_survey.py::test_entropy_evenness_and_the_largest_weight_leave_ou"
            "t_rows_without_a_choice"
        ),
    ),
    Fault(
        "exposure bias with its sign turned",
        "transformer/analysis/steps/exposure_bias.py",
        "bias = going[:, 1] - going[:, 0]",
        "bias = going[:, 0] - going[:, 1]",
        ("tests/analysis/steps/test_exposure.py::test_the_numbers_of_a_position_are_those_of_its_sentences"),
    ),
    Fault(
        "the interval with the variance of a population",
        "transformer/analysis/steps/exposure_bias.py",
        "bias.std(ddof=1)",
        "bias.std(ddof=0)",
        ("tests/analysis/steps/test_exposure.py::test_the_numbers_of_a_position_are_those_of_its_sentences"),
    ),
    Fault(
        "forced and free losses swapped",
        "transformer/analysis/steps/exposure_bias.py",
        "both = np.array([(row[0][position], row[2][position]) for row in here]",
        "both = np.array([(row[2][position], row[0][position]) for row in here]",
        ("tests/analysis/steps/test_exposure.py::test_the_numbers_of_a_position_are_those_of_its_sentences"),
    ),
    Fault(
        "free and forced hits swapped",
        "transformer/analysis/steps/exposure_bias.py",
        "free_right=sum(bool(row[3][position]) for row in here)",
        "free_right=sum(bool(row[1][position]) for row in here)",
        ("tests/analysis/steps/test_exposure.py::test_the_numbers_of_a_position_are_those_of_its_sentences"),
    ),
    Fault(
        "the divergence one position late",
        "transformer/analysis/steps/exposure_bias.py",
        "found = next((i for i, (right, own) in pairs if right != own), None)",
        "found = next((i + 1 for i, (right, own) in pairs if right != own), None)",
        (
            "tests/analysis/steps/test_exposure.py::test_both_losses_agree_up_to_the_divergence_and_there_"
            "the_writing_differs"
        ),
    ),
    Fault(
        "losses of the model's own words",
        "transformer/analysis/steps/exposure_bias.py",
        "right = target[:, step.index]",
        "right = step.tokens",
        ("tests/analysis/steps/test_exposure.py::test_the_numbers_of_a_position_are_those_of_its_sentences"),
    ),
    Fault(
        "entropy in bits",
        "transformer/analysis/steps/candidates.py",
        "np.where(shares > 0, precise, 0.0)",
        "np.where(shares > 0, precise, 0.0) / np.log(2)",
        ("tests/analysis/steps/test_candidates.py::test_candidates_are_the_most_probable_and_the_wanted_ones"),
    ),
    Fault(
        "ranks from 0",
        "transformer/analysis/steps/candidates.py",
        "return int((log_probs > log_probs[token]).sum()) + 1",
        "return int((log_probs > log_probs[token]).sum())",
        "tests/analysis/steps/test_candidates.py::test_ranks_count_the_more_probable_tokens",
    ),
    Fault(
        "the rest with the candidates in it",
        "transformer/analysis/steps/candidates.py",
        "others = np.delete(shares, list(ids))",
        "others = shares",
        ("tests/analysis/steps/test_candidates.py::test_candidates_are_the_most_probable_and_the_wanted_ones"),
    ),
    Fault(
        "the least probable as candidates",
        "transformer/analysis/steps/candidates.py",
        'np.argsort(-precise, kind="stable")',
        'np.argsort(precise, kind="stable")',
        ("tests/analysis/steps/test_candidates.py::test_candidates_are_the_most_probable_and_the_wanted_ones"),
    ),
    Fault(
        "a branch hangs from itself",
        "transformer/analysis/steps/branches.py",
        "parent=places.get(prefix[:-1])",
        "parent=places.get(prefix)",
        "tests/analysis/steps/test_branches.py::test_every_output_is_a_path_and_every_prefix_one_node",
    ),
    Fault(
        "a branch weighs only its first output",
        "transformer/analysis/steps/branches.py",
        "weight=sum(shares[index] for index in found)",
        "weight=shares[found[0]]",
        "tests/analysis/steps/test_branches.py::test_weights_add_up_where_outputs_meet",
    ),
    Fault(
        "attention of the next place of the beam",
        "transformer/analysis/steps/search_tree.py",
        "self.cross[node.step][:, node.place]",
        "self.cross[node.step][:, node.place - 1]",
        (
            "tests/analysis/steps/test_search_tree.py::test_attention_of_every_candidate_is_that_of_reading_"
            "its_words_again"
        ),
    ),
    Fault(
        "scores without the length norm",
        "transformer/analysis/steps/search_tree.py",
        "rank, total, score, name, on_best))",
        "rank, total, total, name, on_best))",
        "tests/analysis/steps/test_search_tree.py::test_every_result_is_a_path_with_its_score",
    ),
    Fault(
        "the place among results from 0",
        "transformer/analysis/steps/search_tree.py",
        "enumerate(self.results, start=1)",
        "enumerate(self.results, start=0)",
        "tests/analysis/steps/test_search_tree.py::test_places_among_the_results_are_known",
    ),
    Fault(
        "rollout multiplied from the wrong side",
        "transformer/analysis/attention/rollout.py",
        "heard = _rows_to_one((mean + np.eye(len(mean)) if has_residual else mean) @ heard)",
        "heard = _rows_to_one(heard @ (mean + np.eye(len(mean)) if has_residual else mean))",
        "tests/analysis/attention/test_rollout.py::test_rollout_is_the_sum_over_all_paths",
    ),
    Fault(
        "rollout without the residual",
        "transformer/analysis/attention/rollout.py",
        "(mean + np.eye(len(mean)) if has_residual else mean)",
        "mean",
        "tests/analysis/attention/test_rollout.py::test_rollout_is_the_sum_over_all_paths",
    ),
    Fault(
        "rollout of the largest head",
        "transformer/analysis/attention/rollout.py",
        "mean = layer.mean(axis=0, dtype=np.float64)",
        "mean = layer.max(axis=0).astype(np.float64)",
        "tests/analysis/attention/test_rollout.py::test_rollout_is_the_sum_over_all_paths",
    ),
    Fault(
        "source and target of the cross rollout swapped",
        "transformer/analysis/attention/rollout.py",
        "CrossRollout(both[..., : len(encoder)], both[..., len(encoder) :])",
        "CrossRollout(both[..., len(encoder) :], both[..., : len(encoder)])",
        ("tests/analysis/attention/test_rollout.py::test_rollout_through_both_stacks_is_the_recursion_over_positions"),
    ),
    Fault(
        "cross rollout past the encoder",
        "transformer/analysis/attention/rollout.py",
        "cross_weights.mean(axis=0, dtype=np.float64) @ encoder",
        "cross_weights.mean(axis=0, dtype=np.float64)",
        ("tests/analysis/attention/test_rollout.py::test_rollout_through_both_stacks_is_the_recursion_over_positions"),
    ),
    Fault(
        "heads summed where their mean is asked for",
        "transformer/analysis/attention/aggregation.py",
        "return chosen.mean(axis=0, dtype=np.float64).astype(values.dtype)",
        "return chosen.sum(axis=0, dtype=np.float64).astype(values.dtype)",
        "tests/analysis/attention/test_combine.py::test_heads_are_combined_cell_by_cell",
    ),
    Fault(
        "the strongest head by its place among the chosen",
        "transformer/analysis/attention/aggregation.py",
        "return np.asarray(heads)[values[list(heads)].argmax(axis=0)]",
        "return values[list(heads)].argmax(axis=0)",
        "tests/analysis/attention/test_combine.py::test_heads_are_combined_cell_by_cell",
    ),
    Fault(
        "columns scaled in place of rows",
        "transformer/analysis/attention/aggregation.py",
        "sums = values.sum(axis=-1, keepdims=True, dtype=np.float64)\n    return (values",
        "sums = values.sum(axis=-2, keepdims=True, dtype=np.float64)\n    return (values",
        "tests/analysis/attention/test_combine.py::test_renormalised_rows_sum_to_one_but_for_empty_ones",
    ),
    Fault(
        "the share of the kept columns",
        "transformer/analysis/attention/aggregation.py",
        "float(kept[:, gone].sum(dtype=np.float64))",
        "float(kept[:, ~gone].sum(dtype=np.float64))",
        ("tests/analysis/attention/test_combine.py::test_what_is_left_out_is_counted_and_nothing_is_renormalised"),
    ),
    Fault(
        "start and end marks merged",
        "transformer/analysis/attention/aggregation.py",
        "index > 0 and word >= 0 and word",
        "index > 0 and word",
        ("tests/analysis/attention/test_combine.py::test_pieces_of_a_word_are_one_group_and_marks_stand_alone"),
    ),
    Fault(
        "entropy in bits by the logarithm of 10",
        "transformer/analysis/attention/aggregation.py",
        "np.log(2.0)",
        "np.log(10.0)",
        (
            "tests/analysis/attention/test_combine.py::test_entropy_is_the_sum_over_keys_and_at_most_the_log"
            "_of_those_allowed"
        ),
    ),
    Fault(
        "the largest entropy of one key more",
        "transformer/analysis/attention/aggregation.py",
        "np.log(np.maximum(allowed, 1))",
        "np.log(np.maximum(allowed, 1) + 1)",
        (
            "tests/analysis/attention/test_combine.py::test_entropy_is_the_sum_over_keys_and_at_most_the_log"
            "_of_those_allowed"
        ),
    ),
    Fault(
        "a head's values with another head's W_O",
        "transformer/analysis/attention/vectors.py",
        'norms.append(torch.einsum("mhd,hkd->hkm", projection, values)',
        'norms.append(torch.einsum("mhd,hkd->hkm", projection.flip(1), values)',
        ("tests/analysis/attention/test_vectors.py::test_norms_are_what_loops_over_the_weights_of_the_model_say"),
    ),
    Fault(
        "a scaled head's contributions at full length",
        "transformer/analysis/attention/vectors.py",
        '_stacked(recording, addresses, "v")) * factors[..., None]',
        '_stacked(recording, addresses, "v"))',
        "tests/analysis/attention/test_picture_checks.py::test_contributions_are_multiplied_out",
    ),
    Fault(
        "distances of heads over another number of rows",
        "transformer/analysis/comparison/head_matching.py",
        "distances = sums / n_rows",
        "distances = sums / (n_rows + 1)",
        "tests/analysis/attention/test_matching.py::test_distances_are_those_of_the_definition",
    ),
    Fault(
        "heads and their partners transposed",
        "transformer/analysis/comparison/head_matching.py",
        "found = summed_distances(joined).numpy()[: len(heads), len(heads) :]",
        "found = summed_distances(joined).numpy()[: len(heads), len(heads) :].T",
        "tests/analysis/attention/test_matching.py::test_shuffled_heads_find_themselves_again",
    ),
    Fault(
        "weights on later tokens summed over the queries",
        "transformer/analysis/attention/mask_leakage.py",
        "float(fallen.mean()) if len(fallen)",
        "float(fallen.sum()) if len(fallen)",
        ("tests/analysis/attention/test_leaks.py::test_loss_and_attention_are_what_loops_over_the_recorded_pass_count"),
    ),
    Fault(
        "padding weighed over all queries",
        "transformer/analysis/attention/mask_leakage.py",
        "fallen = (of_kind * hidden).sum(dim=-1)[queries]",
        "fallen = (of_kind * hidden).sum(dim=-1).flatten()",
        ("tests/analysis/attention/test_leaks.py::test_loss_and_attention_are_what_loops_over_the_recorded_pass_count"),
    ),
    Fault(
        "the rotation turned back",
        "transformer/analysis/positions/tables.py",
        "= np.sin(angle), -np.sin(angle)",
        "= -np.sin(angle), np.sin(angle)",
        "tests/analysis/positions/test_analysis_positions.py::test_the_rotation_is_the_shift_exactly",
    ),
    Fault(
        "wavelengths of half the period",
        "transformer/analysis/positions/tables.py",
        "return 2 * np.pi * base",
        "return np.pi * base",
        ("tests/analysis/positions/test_analysis_positions.py::test_wavelengths_run_from_2_pi_towards_base_times_2_pi"),
    ),
    Fault(
        "a dot product called a cosine",
        "transformer/analysis/positions/tables.py",
        'if kind == "cosine":',
        'if kind == "dot":',
        (
            "tests/analysis/positions/test_analysis_positions.py::test_the_cosine_of_any_row_with_itself_is_"
            "1_and_a_zero_row_is_like_none"
        ),
    ),
    Fault(
        "diagonals that run the other way",
        "transformer/analysis/positions/tables.py",
        "[np.diagonal(matrix, offset) for offset in range(len(matrix))]",
        "[np.diagonal(matrix[::-1], offset) for offset in range(len(matrix))]",
        ("tests/analysis/positions/test_analysis_positions.py::test_likeness_of_sinusoids_depends_on_the_offset_alone"),
    ),
    Fault(
        "the fitted map transposed",
        "transformer/analysis/positions/tables.py",
        "matrix=transposed.T,",
        "matrix=transposed,",
        (
            "tests/analysis/positions/test_analysis_positions.py::test_least_squares_finds_a_linear_map_that"
            "_is_there_and_says_where_there_is_none"
        ),
    ),
    Fault(
        "content and position swapped in the key",
        "transformer/analysis/positions/score_decomposition.py",
        "for k in (k_content, k_position)",
        "for k in (k_position, k_content)",
        ("tests/analysis/positions/test_analysis_positions.py::test_each_part_moves_with_what_it_is_named_after"),
    ),
    Fault(
        "the bias counted as position",
        "transformer/analysis/positions/score_decomposition.py",
        "(content @ weight.T + bias, position @ weight.T)",
        "(content @ weight.T, position @ weight.T + bias)",
        "tests/analysis/positions/test_analysis_positions.py::test_biases_count_as_content",
    ),
    Fault(
        "parts of scores without the divisor",
        "transformer/analysis/positions/score_decomposition.py",
        "k[None])[0]",
        "k[None])[0] * attention.divisor",
        ("tests/analysis/positions/test_analysis_positions.py::test_the_four_parts_sum_to_the_recorded_score"),
    ),
    Fault(
        "a factor for the neighbouring head",
        "transformer/interventions/heads.py",
        "factors[list(self.heads)] = self.factor",
        "factors[[head - 1 for head in self.heads]] = self.factor",
        ("tests/interventions/test_scaled_heads.py::test_other_heads_and_all_weights_of_the_sublayer_stay_as_they_are"),
    ),
    Fault(
        "the other heads are scaled",
        "transformer/interventions/heads.py",
        "factors = heads.new_ones(heads.size(1))\n        factors[list(self.heads)] = self.factor",
        "factors = heads.new_ones(heads.size(1)) * self.factor\n        factors[list(self.heads)] = 1",
        ("tests/interventions/test_scaled_heads.py::test_other_heads_and_all_weights_of_the_sublayer_stay_as_they_are"),
    ),
    Fault(
        "the other heads are off",
        "transformer/interventions/heads.py",
        "return heads * kept[:, None, None]",
        "return heads * ~kept[:, None, None]",
        "tests/interventions/test_interventions.py::test_a_head_off_equals_zeroing_its_columns_of_w_o",
    ),
    Fault(
        "a rule of self-attention in cross-attention",
        "transformer/model/mask_rules.py",
        'return kind.sublayer == "self" and kind.stack in self.stacks',
        "return kind.stack in self.stacks",
        "tests/model/test_masks.py::test_the_pass_and_the_reference_hide_the_same",
    ),
    Fault(
        "a window's reference without its edge",
        "transformer/analysis/attention/mask_reference.py",
        "key <= query + config.window",
        "key < query + config.window",
        "tests/model/test_masks.py::test_the_pass_and_the_reference_hide_the_same",
    ),
    Fault(
        "new queries counted from the first key",
        "transformer/model/masks.py",
        "keys - keys[n_key - n_query :, None]",
        "keys - keys[:n_query, None]",
        "tests/model/test_masks.py::test_a_window_opens_what_is_near_of_what_the_causal_mask_leaves",
    ),
    Fault(
        "a mask that comes back when another is lifted",
        "transformer/interventions/masks.py",
        "self.lifts.union(*(other.lifts for other in others))",
        "self.lifts",
        "tests/interventions/test_interventions.py::test_masks_of_a_model_with_a_window_are_lifted_in_any_order",
    ),
    Fault(
        "kept keys beyond a lifted window taken for padding",
        "transformer/interventions/masks.py",
        "real = (seen if rules is None else seen | ~rules.any(dim=-2)).expand_as(mask)",
        "real = seen.expand_as(mask)",
        "tests/decoding/test_step_decoder.py::test_keys_that_were_kept_are_seen_where_the_window_is_lifted",
    ),
    Fault(
        "plain decoding with a window too narrow",
        "transformer/decoding/plain_steps.py",
        "first=max(0, self.length - self._window)",
        "first=max(0, self.length - self._window + 1)",
        "tests/decoding/test_plain_steps.py::test_logits_are_those_of_a_whole_pass",
    ),
    Fault(
        "captured decoding with a window too wide",
        "transformer/decoding/captured_steps.py",
        "(self._at - self._window - 1)",
        "(self._at - self._window - 2)",
        "tests/decoding/test_plain_steps.py::test_logits_are_those_of_a_whole_pass",
    ),
    Fault(
        "rotary positions counted from the window's first key",
        "transformer/decoding/plain_steps.py",
        "[:, :, None], at.position)",
        "[:, :, None], at.keys.size(2) - 1)",
        "tests/decoding/test_plain_steps.py::test_logits_are_those_of_a_whole_pass",
    ),
    Fault(
        "the attention beyond a window measured on padding",
        "transformer/analysis/attention/mask_leakage.py",
        "hidden = keys[:, None] & ~share.rule",
        "hidden = ~share.rule",
        "tests/analysis/attention/test_leaks.py::test_attention_beyond_a_window_is_what_loops_count",
    ),
    Fault(
        "a lifted causal mask lifts padding too",
        "transformer/interventions/masks.py",
        "seen = mask.any(dim=-2, keepdim=True)",
        "seen = torch.ones_like(mask)",
        ("tests/interventions/test_interventions.py::test_a_lifted_mask_lifts_that_restriction_alone_in_every_layer"),
    ),
    Fault(
        "a row of all heads overwritten",
        "transformer/interventions/attention_rows.py",
        "tensor[:, self.head, row] = 0.0",
        "tensor[:, :, row] = 0.0",
        "tests/interventions/test_attention_edits.py::test_an_overwritten_row_is_what_was_asked",
    ),
    Fault(
        "own numbers that are not divided",
        "transformer/interventions/attention_rows.py",
        "return tuple(number / total for number in numbers)",
        "return tuple(numbers)",
        (
            "tests/interventions/test_attention_edits.py::test_own_numbers_are_divided_by_their_sum_and_noth"
            "ing_else_changes"
        ),
    ),
    Fault(
        "a shift by one position less",
        "transformer/interventions/positions.py",
        "sinusoidal_table(k + length, rows.size(-1), dtype=rows.dtype)[k:]",
        "sinusoidal_table(k + length, rows.size(-1), dtype=rows.dtype)[k - 1 : -1]",
        ("tests/interventions/test_position_interventions.py::test_each_edit_changes_the_rows_of_its_stack_as_it_says"),
    ),
    Fault(
        "the first token stands where the second does",
        "transformer/interventions/positions.py",
        "rows[:, second] = rows[:, first]",
        "rows[:, first] = rows[:, second]",
        ("tests/interventions/test_position_interventions.py::test_each_edit_changes_the_rows_of_its_stack_as_it_says"),
    ),
    Fault(
        "of two switches for one head the first counts",
        "transformer/interventions/compiling.py",
        "kept = [*(earlier for earlier in kept if not part.replaces(earlier)), part]",
        "kept = kept if any(part.replaces(earlier) for earlier in kept) else [*kept, part]",
        (
            "tests/interventions/test_scaled_heads.py::test_of_two_switches_for_one_head_the_last_counts_and"
            "_equal_factors_are_joined"
        ),
    ),
    Fault(
        "written and read alignments swapped",
        "transformer/analysis/heads/survey.py",
        "written=self._alignment(0, head),\n                read=self._alignment(1, head),",
        "written=self._alignment(1, head),\n                read=self._alignment(0, head),",
        "tests/analysis/heads/test_head_checks.py::test_every_column_of_a_survey_is_counted_again",
    ),
    Fault(
        "the first of several equal weights taken for the largest",
        "transformer/analysis/heads/survey.py",
        "equal = weights >= (1 - TIE) * weights.amax(dim=-1, keepdim=True)",
        "equal = torch.arange(weights.size(-1)) == weights.argmax(dim=-1, keepdim=True)",
        "tests/analysis/heads/test_head_checks.py::test_equal_weights_share_what_the_largest_one_counts_for",
    ),
    Fault(
        "a check of shares that rounding may move anywhere",
        "transformer/analysis/heads/survey_checks.py",
        "np.clip(shown - given, -most, most)",
        "(shown - given)",
        "tests/analysis/heads/test_head_checks.py::test_one_wrong_share_is_noticed",
    ),
    Fault(
        "attention distance to the neighbour of each key",
        "transformer/analysis/heads/survey.py",
        "apart = (query[:, None] - torch.arange(n_keys)).abs()",
        "apart = (query[:, None] - torch.arange(n_keys)).abs().roll(1, dims=1)",
        "tests/views/test_attention_distance.py::test_mean_and_spread_are_those_of_all_distances_in_sentences_read_alone",
    ),
    Fault(
        "a uniform head that looks at padding and the future",
        "transformer/analysis/heads/survey.py",
        "uniform = allowed[rows] / possible[:, None]",
        "uniform = torch.ones_like(allowed[rows]) / allowed.size(2)",
        "tests/views/test_attention_distance.py::test_mean_and_spread_are_those_of_all_distances_in_sentences_read_alone",
    ),
    Fault(
        "distances of the last batch alone",
        "transformer/analysis/heads/survey.py",
        "reach[:, : self.reach.size(1)] += self.reach",
        "reach[:, : self.reach.size(1)] += 0 * self.reach",
        "tests/views/test_attention_distance.py::test_mean_and_spread_are_those_of_all_distances_in_sentences_read_alone",
    ),
    Fault(
        "the error of a layer's entropy as if rows of a sentence were independent",
        "transformer/analysis/heads/survey.py",
        "of_pair.square().sum(dim=1),",
        "entropy.square().sum(dim=1),",
        "tests/views/test_layer_entropy.py::test_the_error_of_a_mean_is_its_spread_over_samples_of_sentences",
    ),
    Fault(
        "one head's entropy for that of its layer",
        "transformer/analysis/heads/survey.py",
        "entropy.unflatten(0, (-1, n_heads)).mean(dim=1)",
        "entropy.unflatten(0, (-1, n_heads))[:, 0]",
        "tests/views/test_layer_entropy.py::test_entropies_are_those_of_sentences_read_alone",
    ),
    Fault(
        "a layer's interval of one standard error",
        "transformer/views/heads/entropy.py",
        "half = error * (t_quantile(found.n_pairs - 1)",
        "half = error * (1.0",
        "tests/views/test_layer_entropy.py::test_the_interval_is_students",
    ),
    Fault(
        "the spread of distances is their variance",
        "transformer/views/heads/distance.py",
        "spread = np.sqrt((share * (apart - mean[:, None]) ** 2).sum(axis=1))",
        "spread = (share * (apart - mean[:, None]) ** 2).sum(axis=1)",
        "tests/views/test_attention_distance.py::test_mean_and_spread_are_those_of_all_distances_in_sentences_read_alone",
    ),
    Fault(
        "the spread of distances is taken around 0",
        "transformer/views/heads/distance.py",
        "spread = np.sqrt((share * (apart - mean[:, None]) ** 2).sum(axis=1))",
        "spread = np.sqrt((share * apart**2).sum(axis=1))",
        "tests/views/test_attention_distance.py::test_a_head_that_always_looks_at_the_previous_token_is_one_token_away_"
        "without_spread",
    ),
    Fault(
        "a published survey of other weights shown",
        "transformer/analysis/heads/published.py",
        "in checkpoint.model.named_parameters()}",
        "in ()}",
        "tests/analysis/heads/test_published.py::test_a_survey_of_something_else_counts_as_none",
    ),
    Fault(
        "a rollout that ignores the factors of scaled heads",
        "transformer/analysis/attention/silenced_heads.py",
        "weights[spec.address.layer, head] *= factor",
        "weights[spec.address.layer, head] *= 1",
        "tests/pages/attention/test_pictures.py::test_a_scaled_head_counts_times_its_factor_in_a_rollout",
    ),
    Fault(
        "the bias of 1 on an LSTM's input gate",
        "transformer/model/recurrent.py",
        "parameter.chunk(4)[1]",
        "parameter.chunk(4)[0]",
        (
            "tests/model/test_initial_weights.py::test_a_new_lstm_keeps_sigmoid_1_of_its_cell_and_lets_half_of_"
            "all_else_through"
        ),
    ),
    Fault(
        "the forget gate's bias of 1 in both biases",
        "transformer/model/recurrent.py",
        'name.startswith("bias_ih")',
        'name.startswith("bias")',
        (
            "tests/model/test_initial_weights.py::test_a_new_lstm_keeps_sigmoid_1_of_its_cell_and_lets_half_of_"
            "all_else_through"
        ),
    ),
    Fault(
        "a bias of 1 in a GRU too",
        "transformer/model/recurrent.py",
        'isinstance(module, nn.LSTM) and name.startswith("bias_ih")',
        'name.startswith("bias_ih")',
        (
            "tests/model/test_initial_weights.py::test_every_parameter_is_drawn_from_the_distribution_that_its_"
            "source_names"
        ),
    ),
    Fault(
        "the biases of gates as torch draws them",
        "transformer/model/recurrent.py",
        "            if parameter.dim() == 1:\n                nn.init.zeros_(parameter)",
        "            if parameter.dim() == 1:\n                pass",
        (
            "tests/model/test_initial_weights.py::test_every_parameter_is_drawn_from_the_distribution_that_its_"
            "source_names"
        ),
    ),
    Fault(
        "gates not drawn one by one",
        "transformer/model/recurrent.py",
        "for gate in parameter.chunk(4 if isinstance(module, nn.LSTM) else 3):",
        "for gate in [parameter]:",
        (
            "tests/model/test_initial_weights.py::test_every_parameter_is_drawn_from_the_distribution_that_its_"
            "source_names"
        ),
    ),
    Fault(
        "the gates of a GRU drawn as if they were four",
        "transformer/model/recurrent.py",
        "parameter.chunk(4 if isinstance(module, nn.LSTM) else 3)",
        "parameter.chunk(4)",
        (
            "tests/model/test_initial_weights.py::test_every_parameter_is_drawn_from_the_distribution_that_its_"
            "source_names"
        ),
    ),
    Fault(
        "gates drawn from a normal distribution",
        "transformer/model/recurrent.py",
        "nn.init.xavier_uniform_(gate)",
        "nn.init.xavier_normal_(gate)",
        (
            "tests/model/test_initial_weights.py::test_every_parameter_is_drawn_from_the_distribution_that_its_"
            "source_names"
        ),
    ),
    Fault(
        "the same draw for every gate",
        "transformer/model/recurrent.py",
        "nn.init.xavier_uniform_(gate)",
        "nn.init.xavier_uniform_(gate, generator=torch.Generator().manual_seed(0))",
        "tests/model/test_initial_weights.py::test_no_two_parameters_or_gates_of_a_model_are_drawn_alike",
    ),
    Fault(
        "other matrices of a recurrent model as torch draws them",
        "transformer/model/recurrent.py",
        "nn.init.xavier_uniform_(module.weight)",
        "pass",
        (
            "tests/model/test_initial_weights.py::test_every_parameter_is_drawn_from_the_distribution_that_its_"
            "source_names"
        ),
    ),
    Fault(
        "embeddings of a recurrent model with deviation 0.02",
        "transformer/model/recurrent.py",
        "std=module.embedding_dim**-0.5",
        "std=0.02",
        (
            "tests/model/test_initial_weights.py::test_every_parameter_is_drawn_from_the_distribution_that_its_"
            "source_names"
        ),
    ),
    Fault(
        "v of the additive score with variance 1",
        "transformer/model/scores.py",
        "self.v, std=d_head**-0.5",
        "self.v, std=1.0",
        (
            "tests/model/test_initial_weights.py::test_every_parameter_is_drawn_from_the_distribution_that_its_"
            "source_names"
        ),
    ),
    Fault(
        "v of the additive score with variance 1 / d_head^2",
        "transformer/model/scores.py",
        "self.v, std=d_head**-0.5",
        "self.v, std=1 / d_head",
        (
            "tests/model/test_initial_weights.py::test_every_parameter_is_drawn_from_the_distribution_that_its_"
            "source_names"
        ),
    ),
    Fault(
        "v of the additive score begins as a constant",
        "transformer/model/scores.py",
        "nn.init.normal_(self.v, std=d_head**-0.5)",
        "nn.init.constant_(self.v, d_head**-0.5)",
        (
            "tests/model/test_initial_weights.py::test_every_parameter_is_drawn_from_the_distribution_that_its_"
            "source_names"
        ),
    ),
    Fault(
        "W of the multiplicative score with variance 1 / d_head^2",
        "transformer/model/scores.py",
        "self.W, std=d_head**-0.5",
        "self.W, std=1 / d_head",
        (
            "tests/model/test_initial_weights.py::test_every_parameter_is_drawn_from_the_distribution_that_its_"
            "source_names"
        ),
    ),
    Fault(
        "W of the multiplicative score turned around",
        "transformer/model/scores.py",
        "q @ self.W.to(q.dtype) @ k",
        "q @ self.W.mT.to(q.dtype) @ k",
        "tests/model/test_scores.py::test_a_score_is_what_loops_over_numbers_say",
    ),
    Fault(
        "W of the multiplicative score turned around in the fused path",
        "transformer/model/scores.py",
        "return q @ self.W.to(q.dtype)\n",
        "return q @ self.W.mT.to(q.dtype)\n",
        "tests/model/test_scores.py::test_with_and_without_a_tap_and_a_cache_any_score_says_the_same",
    ),
    Fault(
        "weight decay leaves W of the multiplicative score alone",
        "transformer/training/optimizer.py",
        "return [module.W]",
        "return []",
        "tests/training/test_training_step.py::test_weight_decay_shrinks_exactly_the_matrices_of_every_build",
    ),
    Fault(
        "convolutions drawn like all other matrices",
        "transformer/model/convolutional.py",
        "nn.init.normal_(module.mix.weight, std=math.sqrt(4 / module.mix.in_features))",
        "pass",
        (
            "tests/model/test_initial_weights.py::test_every_parameter_is_drawn_from_the_distribution_that_its_"
            "source_names"
        ),
    ),
    Fault(
        "convolutions drawn as if no gate followed",
        "transformer/model/convolutional.py",
        "std=math.sqrt(4 / module.mix.in_features)",
        "std=math.sqrt(1 / module.mix.in_features)",
        (
            "tests/model/test_initial_weights.py::test_every_parameter_is_drawn_from_the_distribution_that_its_"
            "source_names"
        ),
    ),
    Fault(
        "convolutions drawn by the number of their outputs",
        "transformer/model/convolutional.py",
        "std=math.sqrt(4 / module.mix.in_features)",
        "std=math.sqrt(4 / module.mix.out_features)",
        (
            "tests/model/test_initial_weights.py::test_every_parameter_is_drawn_from_the_distribution_that_its_"
            "source_names"
        ),
    ),
    Fault(
        "depthwise weights with deviation 1 / kernel",
        "transformer/model/convolutional.py",
        "std=kernel**-0.5",
        "std=1 / kernel",
        (
            "tests/model/test_initial_weights.py::test_every_parameter_is_drawn_from_the_distribution_that_its_"
            "source_names"
        ),
    ),
    Fault(
        "biases of convolutions as torch draws them",
        "transformer/model/convolutional.py",
        "            nn.init.zeros_(module.bias)",
        "            pass",
        (
            "tests/model/test_initial_weights.py::test_every_parameter_is_drawn_from_the_distribution_that_its_"
            "source_names"
        ),
    ),
    Fault(
        "matrices of a Transformer from a normal distribution",
        "transformer/model/transformer.py",
        "nn.init.xavier_uniform_(module.weight)",
        "nn.init.xavier_normal_(module.weight)",
        (
            "tests/model/test_initial_weights.py::test_every_parameter_is_drawn_from_the_distribution_that_its_"
            "source_names"
        ),
    ),
    Fault(
        "biases of a Transformer as torch draws them",
        "transformer/model/transformer.py",
        "            nn.init.zeros_(module.bias)",
        "            pass",
        (
            "tests/model/test_initial_weights.py::test_every_parameter_is_drawn_from_the_distribution_that_its_"
            "source_names"
        ),
    ),
    Fault(
        "embeddings of a Transformer with deviation 0.02",
        "transformer/model/transformer.py",
        "std=module.embedding_dim**-0.5",
        "std=0.02",
        (
            "tests/model/test_initial_weights.py::test_every_parameter_is_drawn_from_the_distribution_that_its_"
            "source_names"
        ),
    ),
    Fault(
        "learned positions scaled by their number",
        "transformer/model/positions.py",
        "std=d_model**-0.5",
        "std=max_length**-0.5",
        (
            "tests/model/test_initial_weights.py::test_every_parameter_is_drawn_from_the_distribution_that_its_"
            "source_names"
        ),
    ),
    Fault(
        "a smaller final gain though no residual copies",
        "transformer/model/transformer.py",
        "        if config.tie_output and config.residual:",
        "        if config.tie_output:",
        (
            "tests/model/test_initial_weights.py::test_only_a_final_norm_that_would_copy_its_input_to_tied_weig"
            "hts_begins_with_a_smaller_gain"
        ),
    ),
    Fault(
        "a final gain above 1 in narrow models",
        "transformer/model/transformer.py",
        "min(1.0, 4 / math.sqrt(norm.normalized_shape[0]))",
        "4 / math.sqrt(norm.normalized_shape[0])",
        (
            "tests/model/test_initial_weights.py::test_only_a_final_norm_that_would_copy_its_input_to_tied_weig"
            "hts_begins_with_a_smaller_gain"
        ),
    ),
    Fault(
        "no dropout between encoder layers",
        "transformer/model/recurrent.py",
        "            x = self.dropout(x)\n        vector",
        "        vector",
        (
            "tests/model/test_recurrent.py::test_in_training_dropout_falls_on_embeddings_between_layers_and_on_"
            "outputs_alone"
        ),
    ),
    Fault(
        "dropout falls on the fixed vector",
        "transformer/model/recurrent.py",
        "            ends = layer.ends(x, lengths)\n            x = self.dropout(x)",
        "            x = self.dropout(x)\n            ends = layer.ends(x, lengths)",
        (
            "tests/model/test_recurrent.py::test_in_training_dropout_falls_on_embeddings_between_layers_and_on_"
            "outputs_alone"
        ),
    ),
    Fault(
        "no dropout in the parallel decoder",
        "transformer/model/recurrent.py",
        'self.dropout(layer.address.offer(tap, "output", found))',
        'layer.address.offer(tap, "output", found)',
        (
            "tests/model/test_recurrent.py::test_in_training_dropout_falls_on_embeddings_between_layers_and_on_"
            "outputs_alone"
        ),
    ),
    Fault(
        "no dropout in a step of the decoder",
        "transformer/model/recurrent.py",
        "self.dropout(seen.output(i, found[:, 0]))[:, None]",
        "seen.output(i, found[:, 0])[:, None]",
        (
            "tests/model/test_recurrent.py::test_in_training_dropout_falls_on_embeddings_between_layers_and_on_"
            "outputs_alone"
        ),
    ),
    Fault(
        "dropout enters the recurrence",
        "transformer/model/recurrent.py",
        "            layers.append(after)\n            found = self.dropout(seen.output(i, found[:, 0]))[:, None]",
        (
            "            found = self.dropout(seen.output(i, found[:, 0]))[:, None]\n            layers.append("
            "[found[:, 0], *after[1:]])"
        ),
        (
            "tests/model/test_recurrent.py::test_in_training_dropout_falls_on_embeddings_between_layers_and_on_"
            "outputs_alone"
        ),
    ),
    Fault(
        "no dropout on the combined output",
        "transformer/model/recurrent.py",
        "return self.dropout(torch.tanh(self.combine(torch.cat(parts, dim=-1))))",
        "return torch.tanh(self.combine(torch.cat(parts, dim=-1)))",
        (
            "tests/model/test_recurrent.py::test_in_training_dropout_falls_on_embeddings_between_layers_and_on_"
            "outputs_alone"
        ),
    ),
    Fault(
        "dropout before the tanh of the combined output",
        "transformer/model/recurrent.py",
        "return self.dropout(torch.tanh(self.combine(torch.cat(parts, dim=-1))))",
        "return torch.tanh(self.dropout(self.combine(torch.cat(parts, dim=-1))))",
        (
            "tests/model/test_recurrent.py::test_in_training_dropout_falls_on_embeddings_between_layers_and_on_"
            "outputs_alone"
        ),
    ),
    Fault(
        "dropout twice on the top state without attention",
        "transformer/model/recurrent.py",
        "            return top\n",
        "            return self.dropout(top)\n",
        (
            "tests/model/test_recurrent.py::test_in_training_dropout_falls_on_embeddings_between_layers_and_on_"
            "outputs_alone"
        ),
    ),
    Fault(
        "the same dropout at each step",
        "transformer/model/recurrent.py",
        "            out, state = self.step(x[:, t], state, seen)",
        "            torch.manual_seed(0)\n            out, state = self.step(x[:, t], state, seen)",
        (
            "tests/model/test_recurrent.py::test_in_training_dropout_falls_on_embeddings_between_layers_and_on_"
            "outputs_alone"
        ),
    ),
    Fault(
        "no dropout on embeddings of recurrent and convolutional models",
        "transformer/model/carrying.py",
        'return self.dropout(address.offer(tap, "embedding", tokens(ids) * math.sqrt(self.config.d_model)))',
        'return address.offer(tap, "embedding", tokens(ids) * math.sqrt(self.config.d_model))',
        (
            "tests/model/test_recurrent.py::test_in_training_dropout_falls_on_embeddings_between_layers_and_on_"
            "outputs_alone"
        ),
    ),
    Fault(
        "a recurrent model with a dropout of its own choice",
        "transformer/model/recurrent.py",
        "self.dropout = Dropout(config.dropout)",
        "self.dropout = Dropout(0.1)",
        "tests/model/test_dropout.py::test_with_dropout_a_model_says_the_same_as_without_until_it_is_trained",
    ),
    Fault(
        "no dropout before the encoder's convolutions",
        "transformer/model/convolutional.py",
        "F.pad(self.dropout(x), (0, 0, side, side))",
        "F.pad(x, (0, 0, side, side))",
        (
            "tests/model/test_convolutional.py::test_in_training_dropout_falls_on_embeddings_and_on_what_a_conv"
            "olution_reads_alone"
        ),
    ),
    Fault(
        "no dropout before the decoder's convolutions",
        "transformer/model/convolutional.py",
        "windows_of(self.dropout(x), self.kernel, self.dilation)",
        "windows_of(x, self.kernel, self.dilation)",
        (
            "tests/model/test_convolutional.py::test_in_training_dropout_falls_on_embeddings_and_on_what_a_conv"
            "olution_reads_alone"
        ),
    ),
    Fault(
        "dropout falls on the residual of a convolution",
        "transformer/model/convolutional.py",
        (
            "        side = (self.kernel - 1) // 2 * self.dilation\n        windows = windows_of(F.pad(self.dro"
            "pout(x), (0, 0, side, side))"
        ),
        (
            "        side = (self.kernel - 1) // 2 * self.dilation\n        x = self.dropout(x)\n        window"
            "s = windows_of(F.pad(x, (0, 0, side, side))"
        ),
        (
            "tests/model/test_convolutional.py::test_in_training_dropout_falls_on_embeddings_and_on_what_a_conv"
            "olution_reads_alone"
        ),
    ),
    Fault(
        "dropout drawn anew for each window",
        "transformer/model/convolutional.py",
        "F.pad(self.dropout(x), (0, 0, side, side)), self.kernel, self.dilation)",
        "F.pad(x, (0, 0, side, side)), self.kernel, self.dilation)\n        windows = self.dropout(windows)",
        (
            "tests/model/test_convolutional.py::test_in_training_dropout_falls_on_embeddings_and_on_what_a_conv"
            "olution_reads_alone"
        ),
    ),
    Fault(
        "dropout after the convolution instead of before",
        "transformer/model/convolutional.py",
        "        h = self.convolution(windows_of(self.dropout(x), self.kernel, self.dilation))",
        "        h = self.dropout(self.convolution(windows_of(x, self.kernel, self.dilation)))",
        (
            "tests/model/test_convolutional.py::test_in_training_dropout_falls_on_embeddings_and_on_what_a_conv"
            "olution_reads_alone"
        ),
    ),
    Fault(
        "no dropout on additive weights",
        "transformer/model/attention.py",
        "dropout = self.dropout if self.training else 0.0",
        "dropout = self.dropout if self.training and self.score.is_dot_product else 0.0",
        "tests/model/test_dropout.py::test_attention_in_training_drops_its_share_of_the_weights_of_any_score",
    ),
    Fault(
        "no dropout on fused weights in bfloat16",
        "transformer/model/attention.py",
        "q.float(), k.float(), v.float(), attn_mask=wide, dropout_p=dropout, scale=scale",
        "q.float(), k.float(), v.float(), attn_mask=wide, scale=scale",
        "tests/model/test_dropout.py::test_attention_in_training_drops_its_share_of_the_weights_of_any_score",
    ),
    Fault(
        "one draw decides four neighbours",
        "transformer/model/layers.py",
        (
            "    draws = torch.empty(-(-n // 4), dtype=torch.int64).random_(-(2**63), None)\n    return draws.v"
            "iew(torch.int16)[:n].view(shape)"
        ),
        (
            "    draws = torch.empty(-(-n // 4), dtype=torch.int16).random_(-(2**15), 2**15)\n    return draws."
            "repeat_interleave(4)[:n].view(shape)"
        ),
        "tests/model/test_dropout.py::test_whether_an_element_is_dropped_says_nothing_of_its_neighbours",
    ),
    Fault(
        "one draw for all sentences of a batch",
        "transformer/model/layers.py",
        "kept = _random_int16(x.shape) >=",
        "kept = _random_int16(x.shape[1:]) >=",
        "tests/model/test_dropout.py::test_whether_an_element_is_dropped_says_nothing_of_its_neighbours",
    ),
    Fault(
        "no dropout on embeddings without positions",
        "transformer/model/transformer.py",
        '            x = x + self.address.offer(tap, "positions", rows.expand_as(x))\n        return self.dropout(x)',
        (
            '            return self.dropout(x + self.address.offer(tap, "positions", rows.expand_as(x)))\n    '
            "    return x"
        ),
        "tests/model/test_model.py::test_embedding_dropout_falls_on_the_sum_of_embedding_and_position_in_both_stacks",
    ),
    Fault(
        "no dropout on outputs without a residual",
        "transformer/model/layers.py",
        'x = self.dropout(self.address.offer(tap, "output", sublayer(x)))',
        'x = self.address.offer(tap, "output", sublayer(x))\n        x = x if residual is None else self.dropout(x)',
        "tests/model/test_model.py::test_residual_dropout_falls_on_every_sublayer_s_output",
    ),
    Fault(
        "Muon steps the gates of an LSTM or GRU",
        "transformer/training/optimizer.py",
        "    hidden = [m.weight for m in model.modules() if isinstance(m, nn.Linear) and m is not model.projection]",
        (
            "    hidden = [m.weight for m in model.modules() if isinstance(m, nn.Linear) and m is not model.pro"
            "jection]\n    hidden += [p for m in model.modules() if isinstance(m, nn.RNNBase) for p in m.parame"
            "ters() if p.dim() == 2]"
        ),
        "tests/training/test_optimizer.py::test_of_other_families_muon_leaves_gates_windows_and_score_vectors_to_adam",
    ),
    Fault(
        "Muon steps depthwise weights",
        "transformer/training/optimizer.py",
        "    hidden = [m.weight for m in model.modules() if isinstance(m, nn.Linear) and m is not model.projection]",
        (
            "    hidden = [m.weight for m in model.modules() if isinstance(m, nn.Linear) and m is not model.pro"
            "jection]\n    hidden += [m.depthwise for m in model.modules() if getattr(m, 'depthwise', None) is "
            "not None]"
        ),
        "tests/training/test_optimizer.py::test_of_other_families_muon_leaves_gates_windows_and_score_vectors_to_adam",
    ),
    Fault(
        "Muon without the weight decay of the run",
        "transformer/training/optimizer.py",
        "momentum=config.momentum, weight_decay=decay,",
        "momentum=config.momentum, weight_decay=0.0,",
        "tests/training/test_optimizer.py::test_with_muon_weight_decay_shrinks_every_matrix_by_the_rate_and_leaves_gains_and_biases",
    ),
    Fault(
        "Muon with Adam's beta as its momentum",
        "transformer/training/optimizer.py",
        "momentum=config.momentum, weight_decay=decay,",
        "momentum=config.beta1, weight_decay=decay,",
        "tests/training/test_optimizer.py::test_muon_averages_gradients_by_the_momentum_of_the_run",
    ),
    Fault(
        "dropout before the activation",
        "transformer/model/layers.py",
        "self.outer(self.dropout(self.activation(self.inner(x))))",
        "self.outer(self.activation(self.dropout(self.inner(x))))",
        "tests/model/test_model.py::test_activation_dropout_falls_after_the_activation_of_every_layer",
    ),
    Fault(
        "warm-up in both arms",
        "transformer/experiments/paper/warm_up.py",
        'warmup_steps=size // PART if cell["start"] == WITH else 0,',
        "warmup_steps=size // PART,",
        "tests/experiments/test_what_is_measured.py::test_the_trainings_of_two_cells_differ_in_what_their_levels_mean_and_in_nothing_else",
    ),
    Fault(
        "an experiment on heads that ignores their number",
        "transformer/experiments/paper/heads.py",
        'embedding_dropout=0.0, n_heads=int(cell["heads"]))',
        "embedding_dropout=0.0)",
        "tests/experiments/test_what_is_measured.py::test_the_trainings_of_two_cells_differ_in_what_their_levels_mean_and_in_nothing_else",
    ),
    Fault(
        "rows of Table 3 that are measured with one task alone",
        "transformer/experiments/paper/rows.py",
        "train_briefly(task, model",
        'train_briefly("sort", model',
        "tests/experiments/test_what_is_measured.py::test_the_trainings_of_two_cells_differ_in_what_their_levels_mean_and_in_nothing_else",
    ),
    Fault(
        "rows of Table 3 whose losses cannot fall below that of the smoothing",
        "transformer/experiments/paper/rows.py",
        "label_smoothing=0.0,",
        "",
        "tests/experiments/test_what_is_measured.py::test_losses_that_are_compared_have_no_floor_of_label_smoothing",
    ),
    Fault(
        "unscaled scores that are scaled",
        "transformer/experiments/paper/scaling.py",
        'scale_scores=kind != "unscaled"',
        "scale_scores=True",
        "tests/experiments/test_what_is_measured.py::test_the_trainings_of_two_cells_differ_in_what_their_levels_mean_and_in_nothing_else",
    ),
    Fault(
        "label smoothing in both arms",
        "transformer/experiments/paper/regularisation.py",
        'label_smoothing=float(cell["smoothing"]),',
        "label_smoothing=0.1,",
        "tests/experiments/test_what_is_measured.py::test_the_trainings_of_two_cells_differ_in_what_their_levels_mean_and_in_nothing_else",
    ),
    Fault(
        "dropout on embeddings alone",
        "transformer/experiments/paper/regularisation.py",
        "dropout=dropout, embedding_dropout=dropout",
        "dropout=0.0, embedding_dropout=dropout",
        "tests/experiments/test_what_is_measured.py::test_the_trainings_of_two_cells_differ_in_what_their_levels_mean_and_in_nothing_else",
    ),
    Fault(
        "keys of one width whatever the row of Table 3",
        "transformer/experiments/paper/table_3.py",
        "partial(narrow_keys, d_k=variation.d_k)",
        "partial(narrow_keys, d_k=4)",
        "tests/experiments/test_what_is_measured.py::test_the_trainings_of_two_cells_differ_in_what_their_levels_mean_and_in_nothing_else",
    ),
    Fault(
        "every seed of the averages is the first",
        "transformer/experiments/paper/averaging.py",
        "seed=seed, run=task",
        "seed=0, run=task",
        "tests/experiments/test_what_is_measured.py::test_the_trainings_of_two_cells_differ_in_what_their_levels_mean_and_in_nothing_else",
    ),
    Fault(
        "a beam search that ignores the length penalty",
        "transformer/experiments/paper/beam_search.py",
        'alpha=float(cell["alpha"]),',
        "alpha=PAPER_ALPHA,",
        "tests/experiments/test_paper_experiments.py::test_a_beam_decodes_as_its_cell_says",
    ),
    Fault(
        "a beam search that always stops early",
        "transformer/experiments/paper/beam_search.py",
        'early_stopping=cell["stop"] == EARLY,',
        "early_stopping=True,",
        "tests/experiments/test_paper_experiments.py::test_a_beam_decodes_as_its_cell_says",
    ),
    Fault(
        "every group of names is the first",
        "transformer/experiments/paper/beam_search.py",
        "[GROUP * seed : GROUP * (seed + 1)]",
        "[:GROUP]",
        "tests/experiments/test_paper_experiments.py::test_a_beam_decodes_as_its_cell_says",
    ),
    Fault(
        "the best rate chosen by the seed that it is judged on",
        "transformer/experiments/comparisons.py",
        "items() if s != seed)",
        "items() if s == seed)",
        "tests/experiments/test_paper_experiments.py::test_the_rate_of_a_start_is_chosen_by_the_other_seeds",
    ),
    Fault(
        "strings of training of at most 10 symbols",
        "transformer/experiments/paper/why_attention.py",
        "train_model(TASKS[task].corpus, TASKS[task]",
        "train_model(CorpusConfig(name=task), TASKS[task]",
        "tests/experiments/test_what_is_measured.py::test_each_arm_of_why_attention_is_its_own_model_and_meets_no_longer_sentence_than_it_says",
    ),
    Fault(
        "half of the test strings",
        "transformer/experiments/paper/why_attention.py",
        "pairs_of_length(name, length, PAIRS)",
        "pairs_of_length(name, length, PAIRS // 2)",
        "tests/experiments/test_what_is_measured.py::test_all_strings_of_a_length_are_translated",
    ),
    Fault(
        "heads scored on the pairs that chose them",
        "transformer/experiments/paper/alignment.py",
        "for i in (0, 1))",
        "for i in (0, 0))",
        "tests/experiments/test_what_is_measured.py::test_heads_are_chosen_on_other_pairs_than_they_are_scored_on_and_no_training_saw_either",
    ),
    Fault(
        "averages of the oldest checkpoints",
        "transformer/experiments/paper/averaging.py",
        "list(recent)[-count:]",
        "list(recent)[:count]",
        "tests/experiments/test_what_is_measured.py::test_averages_are_of_the_last_checkpoints_of_one_training",
    ),
    Fault(
        "regularised models scored on a third of the names",
        "transformer/experiments/paper/regularisation.py",
        'pairs = [*trained.corpus.validation, *trained.corpus.held_out["random"]]',
        "pairs = [*trained.corpus.validation]",
        "tests/experiments/test_what_is_measured.py::test_regularised_models_are_scored_on_all_names_that_they_did_not_see",
    ),
    Fault(
        "every speed is the Transformer's",
        "transformer/experiments/paper/parallel_training.py",
        '[str(cell["model"])]',
        "[ALONE]",
        "tests/experiments/test_what_is_measured.py::test_the_speed_of_a_model_is_its_own_and_the_least_of_the_repeats_counts",
    ),
    Fault(
        "the time of the last repeat for the least",
        "transformer/experiments/paper/parallel_training.py",
        "min(values[1:])",
        "values[-1]",
        "tests/experiments/test_what_is_measured.py::test_the_speed_of_a_model_is_its_own_and_the_least_of_the_repeats_counts",
    ),
    Fault(
        "Holm's correction that is Bonferroni's",
        "transformer/experiments/outcome.py",
        "level / (len(p_values) - rank)",
        "level / len(p_values)",
        "tests/experiments/test_experiments.py::test_holms_correction_is_recounted_and_keeps_a_family_of_nulls_within_the_level",
    ),
    Fault(
        "a verdict whatever was learned",
        "transformer/experiments/outcome.py",
        "return Outcome.UNLEARNED if self.unlearned else self.deciding.outcome",
        "return self.deciding.outcome",
        "tests/experiments/test_experiments.py::test_a_verdict_stays_open_while_an_arm_of_it_has_not_learned",
    ),
    Fault(
        "the worst rate counts for what was learned",
        "transformer/experiments/experiment.py",
        "if means and max(means) < self.least:",
        "if means and min(means) < self.least:",
        "tests/experiments/test_experiments.py::test_a_verdict_stays_open_while_an_arm_of_it_has_not_learned",
    ),
    Fault(
        "a verdict by all numbers",
        "transformer/experiments/outcome.py",
        "return Outcome.UNLEARNED if self.unlearned else self.deciding.outcome",
        "return together([each.outcome for each in self.findings])",
        "tests/experiments/test_experiments.py::test_one_finding_decides_and_the_others_must_be_the_clearer_the_more_there_are",
    ),
    Fault(
        "the bootstrap's p value of one side",
        "transformer/experiments/intervals.py",
        "min(1.0, 2.0 * max(",
        "min(1.0, max(",
        "tests/experiments/test_experiments.py::test_a_p_value_is_the_level_whose_interval_ends_at_the_border",
    ),
    Fault(
        "the smallest effect without its power",
        "transformer/experiments/intervals.py",
        "2 * (1 - _POWER)",
        "1.0",
        "tests/experiments/test_experiments.py::test_the_smallest_effect_that_can_be_told_is_told_in_four_of_five_cases",
    ),
)
