"""The field of a guess in the Learn pane: letters and digits type into it, until Esc leaves it."""

from attn_tui.tui.panes.learn.pane import LearnPane
from stage import Stage, played


async def learn(stage: Stage) -> LearnPane:
    """Open the pane and wait for the figures of its step."""
    pane = await stage.opened(LearnPane)
    await stage.until(lambda: pane.is_current, "the figures")
    await stage.still()
    return pane


@played(size=(80, 24))
async def test_letters_type_into_the_field_and_are_nothing_else(stage: Stage) -> None:
    pane = await learn(stage)
    for text, shown in (
        ("sqrt(64)", "sqrt(64)_  = 8"),
        ("none", "none_  = 0"),
        ("quit", "quit_"),
        ("1/8", "1/8_  = 0.125"),
    ):
        await stage.press(*text)
        await stage.still()
        assert f"Your guess: {shown}" in stage.text
        assert (stage.app.active, pane.at) == ("Learn", 0)
        await stage.press("ctrl+u")
    await stage.press(*"sqrt(d_k)", "enter")
    await stage.still()
    assert "Your guess, 8, is exact." in stage.text


@played(size=(80, 24))
async def test_a_guess_and_enter_in_one_burst_show_the_answer_to_that_guess(stage: Stage) -> None:
    pane = await learn(stage)
    stage.send(*"64", "enter")
    await stage.answered()
    await stage.still()
    assert "Your guess, 64, is 8 times the answer." in stage.text
    assert pane.attempt.stage == 1


@played(size=(80, 24))
async def test_the_message_after_the_last_item_names_keys_that_lead_to_the_list_from_any_field(stage: Stage) -> None:
    pane = await learn(stage)
    await stage.press("end")
    await stage.until(lambda: pane.is_current, "the capture")
    await stage.press("enter", "enter")
    await stage.still()
    assert "That was the last one. Esc, then v, lists them all." in stage.text
    await stage.press("backspace")
    assert pane.text.has_focus
    await stage.press("escape", "v")
    await stage.still()
    assert "of 41 done" in stage.text


@played(size=(80, 24))
async def test_the_field_does_not_take_the_focus_from_a_pane_opened_at_once_after_it(stage: Stage) -> None:
    for pane in ("Learn", "Watch"):
        stage.app.action_pane(pane)
    await stage.still()
    await stage.press("S", ">", ">")
    await stage.still()
    assert stage.app.active == "Learn"
    assert "Your guess: _" in stage.text


@played(size=(80, 24))
async def test_esc_erases_the_guess_then_leaves_the_field_and_letters_are_shortcuts_again(stage: Stage) -> None:
    pane = await learn(stage)
    assert "Esc leave the field" in stage.lines[-1]
    await stage.press("n")
    assert "Esc erase" in stage.lines[-1]
    await stage.press("escape")
    await stage.still()
    assert "Your guess: _" in stage.text
    await stage.press("escape")
    await stage.still()
    assert "Your guess: _" not in stage.text
    assert "q quit" in stage.lines[-1]
    assert "Tab type a guess" in stage.lines[-1]
    await stage.press("n", "n")  # the field of the next step has the focus
    assert (pane.at, pane.attempt.text) == (1, "n")
    await stage.press("escape", "escape", "tab", "n")
    assert (pane.at, pane.attempt.text) == (1, "n")
    await stage.press("escape", "escape", "1", "2")
    assert pane.attempt.text == "12"
    assert pane.text.has_focus


@played(size=(80, 24))
async def test_the_key_bar_offers_the_field_only_where_there_is_one(stage: Stage) -> None:
    await learn(stage)
    await stage.press("escape")
    await stage.still()
    assert "Tab type a guess" in stage.lines[-1]
    await stage.press("enter")
    await stage.still()
    assert "Tab" not in stage.lines[-1]
    await stage.press("M")
    await stage.still()
    assert "Tab" not in stage.lines[-1]


@played(size=(80, 24))
async def test_a_share_below_1_per_cent_says_how_to_type_a_hundred_times_as_much(stage: Stage) -> None:
    pane = await learn(stage)
    await stage.press(*["down"] * 4, *"0.12")
    await stage.still()
    assert pane.item.id == "scales"
    assert "Your guess: 0.12_  = 0.12 %; for 12 %, type 12" in stage.text
    await stage.press(*" %")
    await stage.still()
    assert "Your guess: 0.12 %_  = 0.12 %  " in stage.text


@played(size=(80, 24))
async def test_backspace_erases_and_in_an_empty_field_goes_back(stage: Stage) -> None:
    pane = await learn(stage)
    await stage.press("down", "1", "2", "backspace", "backspace")
    assert (pane.at, pane.attempt.text) == (1, "")
    await stage.press("backspace")
    assert pane.at == 0


@played(size=(80, 24))
async def test_a_root_sign_and_digits_of_full_width_are_typed(stage: Stage) -> None:
    pane = await learn(stage)
    await stage.press("√", "６", "４")
    await stage.still()
    assert pane.attempt.guess == 8
    assert "Your guess: √６４_  = 8" in stage.text


@played(size=(120, 40))
async def test_a_click_on_the_text_goes_to_the_field(stage: Stage) -> None:
    pane = await learn(stage)
    await stage.press("escape")
    assert not pane.text.has_focus
    await stage.pilot.click(pane.text, offset=(5, 5))
    await stage.press(*"1/2")
    assert pane.attempt.guess == 0.5


@played(size=(80, 24))
async def test_a_cause_is_chosen_by_its_words_too(stage: Stage) -> None:
    pane = await learn(stage)
    await stage.press("end", "up", "up", "up", "up", "up")
    assert pane.item.word == "b3"
    await stage.until(lambda: pane.is_current, "the capture")
    await stage.press(*"mask")
    await stage.still()
    assert "Your answer: mask_" in stage.text
    await stage.press("enter")
    await stage.still()
    assert "'mask' could be 2, 3; type more of it" in stage.words(pane.text)
    await stage.press(*" was lost", "enter")
    await stage.still()
    assert "Right: the causal mask was lost." in stage.words(pane.text)


@played(size=(80, 24))
async def test_a_guess_that_was_erased_is_no_step_of_undo(stage: Stage) -> None:
    await stage.press("right")
    pane = await learn(stage)
    await stage.press("6", "escape", "escape", "u")
    assert pane.undo_state == (0, {}, frozenset())
    assert stage.app.active == "Lab", "the step before was to open the pane"
